// Scores rows with the compiled rules in Node.js: one JSON object per line in, one answer per line out.
//
//     gbfl compile ../loans.gbfl.json --to js -o build
//     node score.mjs < rows.jsonl

import { createInterface } from "node:readline";
import { CLAUSES, DIGEST, score } from "./build/js/model.js";

console.log("program", DIGEST.slice(0, 12));
for await (const line of createInterface({ input: process.stdin })) {
  try {
    const { label, probabilities, held } = score(JSON.parse(line));
    const because = held.map((clause) => CLAUSES[clause]).join("; ") || "no rule held";
    console.log(label, Math.max(...probabilities), because);
  } catch (error) {
    console.error(`refused: ${error.message}: ${line}`); // nothing is converted: "31000" is not 31000
    process.exitCode = 2;
  }
}
