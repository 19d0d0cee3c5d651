"""One row of a depth-5 tree in Node.js: the emitted module, its answer and reason by name, and m2cgen's function.

Runs in the peers' environment and prints one JSON line per contender. All run in one process, in turn, each on the rows
in the form that it takes, and the quickest of 30 rounds counts; their answers are compared first.
"""

import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.tree import DecisionTreeClassifier

from gbfl_compile.backends import emit
from gbfl_compile.lowering import lower

RACE = """
import { readFileSync } from "node:fs";
import { FEATURES, score, scoreColumns } from "./model.mjs";
import { peer } from "./peer.mjs";
const rows = JSON.parse(readFileSync("rows.json", "utf8"));
const named = JSON.parse(readFileSync("named.json", "utf8"));
const columns = Object.fromEntries(FEATURES.map(({ name }, i) => [name, Float64Array.from(rows, (row) => row[i])]));
const differ = rows.filter((row, i) => {
  const [no, yes] = peer(row);
  return score(named[i]).probabilities[1] !== yes || score(named[i]).index !== (yes > no ? 1 : 0);
});
if (differ.length) throw new Error(differ.length + " rows differ");
let sum = 0;
const contenders = {
  "js: score(row)": () => { for (const row of named) sum += score(row).index; },
  "m2cgen": () => { for (const row of rows) sum += peer(row)[1]; },
  "js: scoreColumns": () => { sum += scoreColumns(columns).length; },
};
const times = Object.fromEntries(Object.keys(contenders).map((who) => [who, []]));
for (let round = 0; round < 30; round += 1) {
  for (const [who, run] of Object.entries(contenders)) {
    const began = performance.now();
    for (let again = 0; again < 200; again += 1) run();
    times[who].push(((performance.now() - began) * 1e6) / (200 * rows.length));
  }
}
const quickest = (taken) => Math.min(...taken);
for (const [who, taken] of Object.entries(times)) {
  console.log(JSON.stringify({ shape: "tree of depth 5, one row per call", who, nanoseconds: quickest(taken) }));
}
"""


def main() -> None:
    """Write the modules and the rows into one folder and race them there."""
    import m2cgen

    node = shutil.which("node")
    if node is None:
        sys.stderr.write("Node.js is not installed: apt-get install nodejs\n")
        return
    data = load_breast_cancer(as_frame=True)
    model = DecisionTreeClassifier(max_depth=5, random_state=0).fit(data.data, data.target)
    program = lower(model)
    rows = np.asarray(data.data, dtype=np.float32).astype(float).tolist()
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        place.joinpath("model.mjs").write_bytes(emit(program, "js").files["model.js"])
        place.joinpath("peer.mjs").write_text(
            m2cgen.export_to_javascript(model, function_name="peer") + "\nexport { peer };"
        )
        place.joinpath("rows.json").write_text(json.dumps(rows))
        place.joinpath("named.json").write_text(
            json.dumps([dict(zip(program.features, row, strict=True)) for row in rows])
        )
        place.joinpath("race.mjs").write_text(RACE)
        run = subprocess.run([node, "race.mjs"], cwd=folder, stdout=subprocess.PIPE, text=True)
    sys.stdout.write(run.stdout)


if __name__ == "__main__":
    main()
