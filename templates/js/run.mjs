// Scores the columns that standard input holds, by column and row by row, and writes the answers to standard output.
// Numbers come and go as the bytes of doubles: JSON has neither NaN nor infinities.
import { readFileSync, writeFileSync } from "node:fs";
import * as model from "./model.mjs";
const { DIGEST, FEATURES, CLASSES, score, scoreColumns } = model;
const doubles = (text) => new Float64Array(Uint8Array.from(Buffer.from(text, "base64")).buffer);
const bytes = (values) => Buffer.from(Float64Array.from(values).buffer).toString("base64");
const request = JSON.parse(readFileSync(0, "utf8"));
const reply = { DIGEST, FEATURES, CLASSES };
if (request !== null) {
  const columns = Object.create(null);
  request.columns.forEach((column, i) => {
    columns[FEATURES[i].name] = typeof column === "string" ? doubles(column) : column;
  });
  const answers = scoreColumns(columns);
  const alone = answers.map((_, i) => {
    const row = JSON.parse("{" + FEATURES.map(({ name }) => JSON.stringify(name) + ":0").join(",") + "}");
    for (const { name } of FEATURES) {
      Object.defineProperty(row, name, { value: columns[name][i], enumerable: true });
    }
    return score(row);
  });
  const same = (a, b) => JSON.stringify(a) === JSON.stringify(b);
  const wrong = answers.findIndex((answer, i) => !same(answer, alone[i]) || CLASSES[answer.index] !== answer.label);
  reply.wrong = wrong < 0 ? null : [answers[wrong], alone[wrong]];
  reply.winners = bytes(answers.map((answer) => answer.index));
  reply.probabilities = bytes(answers.flatMap((answer) => answer.probabilities));
  const tree = answers.every((answer) => answer.leaf !== null);
  reply.leaves = tree ? bytes(answers.map((answer) => answer.leaf)) : null;
  reply.scores = tree ? null : bytes(answers.flatMap((answer) => answer.scores));
}
writeFileSync(1, JSON.stringify(reply));
