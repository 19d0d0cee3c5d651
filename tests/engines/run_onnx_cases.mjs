// Run by node: `run_onnx_cases.mjs FOLDER` prints a line of differing labels and scores a case, as run_onnx_cases.py does.
// onnxruntime-web is found in the working folder's node_modules.
import { createRequire } from "node:module";
import { readFileSync } from "node:fs";
import { join } from "node:path";

const require = createRequire(join(process.cwd(), "here.js"));
const ort = require("onnxruntime-web");
ort.env.wasm.numThreads = 1;
ort.env.logLevel = "error";
const folder = process.argv[2];
console.log("onnxruntime-web", ort.env.versions.web);

const same = (a, b) => String(a) === String(b);

for (const given of JSON.parse(readFileSync(join(folder, "cases.json"), "utf8"))) {
  const bytes = readFileSync(join(folder, given.name + ".rows"));
  const copy = bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.byteLength);
  const rows = given.dtype === "float64" ? new Float64Array(copy) : new Float32Array(copy);
  let session;
  try {
    session = await ort.InferenceSession.create(readFileSync(join(folder, given.name + ".onnx")));
  } catch (error) {
    console.log([given.name, "not loaded", String(error).split("\n")[0]].join("\t"));
    continue;
  }
  const found = await session.run({ input: new ort.Tensor(given.dtype, rows, given.shape) });
  const labels = found.label.data;
  let wrong = given.labels.filter((label, i) => !same(label, labels[i])).length;
  if (given.scores !== null) {
    const width = given.scores[0].length;
    given.scores.forEach((line, i) => {
      wrong += line.some((points, c) => !same(points, found.score.data[i * width + c])) ? 1 : 0;
    });
  }
  console.log([given.name, wrong, given.labels.length].join("\t"));
}
