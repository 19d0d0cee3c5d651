// The interactive part of a report. It follows the proved scorer (score, CLASSES) and PAGE, the data of this page.
// Every name and text that it shows becomes a text node: nothing here is ever read as markup.
{
  const { features, clauses, program, examples, file, target } = PAGE;
  const DAY = 86400000;
  const used = features.filter((feature) => feature.used);
  const state = {};
  let edited = JSON.parse(JSON.stringify(program));

  const make = (tag, properties = {}, ...children) => {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(properties)) {
      if (name === "text") element.textContent = value;
      else if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
      else element.setAttribute(name, value);
    }
    element.append(...children);
    return element;
  };
  const at = (id) => document.getElementById(id);
  const fill = (element, ...children) => element.replaceChildren(...children);
  const isTime = (kind) => kind === "date" || kind === "timestamp";

  // Numbers: every value of a kind as the double that the rules compare, and back.
  const plain = (feature, value) => {
    if (value === null) return null;
    if (feature.kind === "date") return Date.parse(`${value}T00:00:00Z`) / DAY;
    if (feature.kind === "timestamp") return Date.parse(`${value}Z`) * 1000;
    return feature.kind === "boolean" ? String(value) : value;
  };
  const written = (feature, number) => {
    if (feature.kind === "date") return new Date(number * DAY).toISOString().slice(0, 10);
    if (feature.kind === "timestamp") return new Date(number / 1000).toISOString().slice(0, 19);
    return number;
  };
  const digits = (number) => (Number.isInteger(number) ? String(number) : String(Number(number.toPrecision(6))));
  const shown = (feature, value) => {
    if (value === null) return "missing";
    return feature.kind === "number" ? digits(value) : String(value);
  };
  const bits = new Float64Array(1);
  const whole = new BigInt64Array(bits.buffer);
  const next = (number, up) => {
    if (number === 0) return up ? Number.MIN_VALUE : -Number.MIN_VALUE;
    bits[0] = number;
    whole[0] += up === number > 0 ? 1n : -1n;
    return bits[0];
  };
  const isWhole = (feature) => feature.whole || isTime(feature.kind);

  // The edited program: read from its JSON, for counting which rows would move. The page's own answers are the scorer's.
  const number = (form) => Number(form.decimal);
  const holdsAtom = (atom, row) => {
    const value = plain(features[atom.feature], row[features[atom.feature].name]);
    if (value === null || Number.isNaN(value)) return atom.if_missing;
    if (atom.values) return atom.values.includes(value) !== atom.negated;
    const low = !atom.lo || (atom.closed === "left" || atom.closed === "both" ? value >= number(atom.lo) : value > number(atom.lo));
    const high = !atom.hi || (atom.closed === "right" || atom.closed === "both" ? value <= number(atom.hi) : value < number(atom.hi));
    return low && high;
  };
  const holds = (form, clause, row) => form.clauses[clause].every((atom) => holdsAtom(atom, row));
  const winner = (numbers) => numbers.indexOf(Math.max(...numbers));
  const decide = (form, row) => {
    if (form.decision.kind === "tree") {
      let node = form.decision.nodes[0];
      while ("clause" in node) node = form.decision.nodes[holds(form, node.clause, row) ? node.then : node.otherwise];
      return node.answer ?? winner(node.probabilities.map(number));
    }
    const scores = form.decision.bias.slice();
    form.clauses.forEach((_, clause) => {
      if (holds(form, clause, row)) form.decision.points[clause].forEach((points, index) => (scores[index] += points));
    });
    return winner(scores);
  };

  // The values of a feature that could matter: every bound, and a value between each two. Between two bounds all behave alike.
  const boundsOf = (feature) => {
    const atoms = program.clauses.flat().filter((atom) => atom.feature === feature.index && !atom.values);
    const all = atoms.flatMap((atom) => [atom.lo, atom.hi]).filter(Boolean).map(number);
    return [...new Set(all)].sort((a, b) => a - b);
  };
  for (const feature of used) feature.bounds = boundsOf(feature);
  const cells = (feature) => {
    if (feature.kind === "category") return feature.texts.map((text) => ({ value: text }));
    if (feature.kind === "boolean") return [{ value: true }, { value: false }];
    const list = [];
    feature.bounds.forEach((bound, place) => {
      list.push({ low: feature.bounds[place - 1] ?? -Infinity, high: bound }, { low: bound, high: bound });
    });
    list.push({ low: feature.bounds.at(-1) ?? -Infinity, high: Infinity });
    return list;
  };
  // The value of a cell that is nearest to `from`, or null where no value of the kind lies in it.
  const nearest = (feature, cell, from) => {
    if ("value" in cell) return cell.value;
    const { low, high } = cell;
    if (low === high) return isWhole(feature) && !Number.isInteger(low) ? null : low;
    const below = isWhole(feature) ? Math.ceil(high) - 1 : next(high, false);
    const above = isWhole(feature) ? Math.floor(low) + 1 : next(low, true);
    if (low === -Infinity && high === Infinity) return from ?? 0;
    const value = low === -Infinity ? below : high === Infinity ? above : from !== null && from >= high ? below : above;
    return value > low && value < high ? value : null;
  };
  const width = (feature) => Math.max(feature.max - feature.min, 1e-12);
  const alternatives = (feature) => {
    const now = plain(feature, state[feature.name]);
    const text = feature.kind === "category" || feature.kind === "boolean";
    return cells(feature).flatMap((cell) => {
      const value = nearest(feature, cell, text ? null : now);
      if (value === null || (text ? value === state[feature.name] : value === now)) return [];
      const distance = text || now === null ? 1 : Math.abs(value - now) / width(feature);
      return [{ feature, cell, value: text ? value : written(feature, value), distance }];
    });
  };
  const labelWith = (...changes) => {
    const row = { ...state };
    for (const change of changes) row[change.feature.name] = change.value;
    return score(row).index;
  };
  const MOST_PAIRS = 6000;
  const smallestChanges = (index) => {
    const options = used.map(alternatives);
    const single = options.flatMap((list) => list.filter((change) => labelWith(change) !== index).sort((a, b) => a.distance - b.distance).slice(0, 1));
    if (single.length) return single.sort((a, b) => a.distance - b.distance).slice(0, 5).map((change) => [change]);
    const pairs = [];
    let tried = 0;
    for (let a = 0; a < options.length; a += 1)
      for (let b = a + 1; b < options.length; b += 1)
        for (const first of options[a])
          for (const second of options[b]) {
            if ((tried += 1) > MOST_PAIRS) break;
            if (labelWith(first, second) !== index) pairs.push([first, second]);
          }
    const far = (pair) => pair.reduce((sum, change) => sum + change.distance, 0);
    return pairs.sort((a, b) => far(a) - far(b)).slice(0, 3);
  };
  const changeText = (change) => {
    const { feature, cell, value } = change;
    const now = shown(feature, state[feature.name]);
    if (feature.kind === "number" && !feature.whole && cell.low !== cell.high) {
      const from = plain(feature, state[feature.name]);
      const rising = from === null ? cell.low !== -Infinity : from <= cell.low;
      return `${feature.name}: ${now} → ${rising ? "just above" : "just below"} ${digits(rising ? cell.low : cell.high)}`;
    }
    return `${feature.name}: ${now} → ${shown(feature, value)}`;
  };

  // Controls, one per feature that a rule asks about.
  const controls = new Map();
  const control = (feature) => {
    const id = `try-${feature.index}`;
    const missing = make("input", { type: "checkbox", id: `${id}-missing` });
    const strip = make("div", { class: "strip", "aria-hidden": "true" });
    const parts = [];
    let field, slider = null;
    if (feature.kind === "category" || feature.kind === "boolean") {
      field = make("select", { id });
      const texts = feature.kind === "boolean" ? ["true", "false"] : feature.texts;
      texts.forEach((text, place) => field.append(make("option", { value: String(place), text: text === "" ? "(empty text)" : text })));
      parts.push(field);
    } else {
      const type = feature.kind === "number" ? "number" : feature.kind === "date" ? "date" : "datetime-local";
      field = make("input", { id, type, step: feature.kind === "number" ? "any" : "1" });
      if (feature.max > feature.min) {
        const step = isWhole(feature) ? 1 : (feature.max - feature.min) / 200;
        slider = make("input", { type: "range", min: feature.min, max: feature.max, step, "aria-label": `${feature.name}, slider` });
        parts.push(slider);
      }
      parts.push(field);
    }
    const read = () => {
      if (missing.checked) return null;
      if (feature.kind === "boolean") return field.value === "0";
      if (feature.kind === "category") return feature.texts[Number(field.value)];
      if (field.value === "") return null;
      return feature.kind === "number" ? Number(field.value) : field.value.slice(0, feature.kind === "date" ? 10 : 19);
    };
    const write = (value) => {
      missing.checked = value === null;
      field.disabled = value === null;
      if (slider) slider.disabled = value === null;
      if (value === null) return;
      if (feature.kind === "boolean") field.value = value ? "0" : "1";
      else if (feature.kind === "category") {
        if (!feature.texts.includes(value)) {
          feature.texts.push(value);
          field.append(make("option", { value: String(feature.texts.length - 1), text: value }));
        }
        field.value = String(feature.texts.indexOf(value));
      } else {
        field.value = value;
        if (slider) slider.value = plain(feature, value);
      }
    };
    const change = (value) => {
      state[feature.name] = value;
      write(value);
      update();
    };
    field.addEventListener("input", () => {
      const value = read();
      if (value === null && !missing.checked) return; // half a date, while it is being typed
      state[feature.name] = value;
      if (slider && value !== null) slider.value = plain(feature, value);
      update();
    });
    if (slider) slider.addEventListener("input", () => change(written(feature, Number(slider.value))));
    missing.addEventListener("input", () => change(missing.checked ? null : usual(feature)));
    controls.set(feature.name, { write, strip, feature });
    const label = make("label", { for: id, text: feature.name });
    const gap = make("label", { class: "gap" }, missing, " missing");
    return make("div", { class: "control", role: "group", "aria-label": feature.name }, label, make("div", { class: "inputs" }, ...parts, gap), strip);
  };
  const usual = (feature) => {
    if (feature.kind === "category") return feature.texts[0];
    if (feature.kind === "boolean") return false;
    const middle = (feature.min + feature.max) / 2;
    return written(feature, isWhole(feature) ? Math.round(middle) : middle);
  };

  // What the page says about the row.
  const bar = (share, index) => {
    const inner = make("span", { class: `share class${Math.min(index, 5)}` });
    inner.style.width = `${100 * share}%`;
    return make("span", { class: "track", "aria-hidden": "true" }, inner);
  };
  const list = (items, none) => (items.length ? make("ul", {}, ...items) : make("p", { class: "soft", text: none }));
  const drawStrip = ({ strip, feature }) => {
    const pieces = cells(feature).filter((cell) => !("low" in cell) || cell.low !== cell.high);
    fill(strip, ...pieces.map((cell) => {
      const value = nearest(feature, cell, null) ?? nearest(feature, { low: cell.low, high: cell.low }, null);
      const index = value === null ? -1 : labelWith({ feature, value: "value" in cell ? value : written(feature, value) });
      const piece = make("span", { class: index < 0 ? "none" : `class${Math.min(index, 5)}` });
      const low = Math.max(cell.low ?? 0, feature.min), high = Math.min(cell.high ?? 1, feature.max);
      piece.style.flexGrow = "value" in cell ? 1 : Math.max(high - low, 0) / width(feature) + 0.002;
      if (CLASSES[index] !== undefined) piece.title = String(CLASSES[index]);
      return piece;
    }));
  };
  const stays = (index) => used.flatMap((feature) => {
    if (feature.kind === "category" || feature.kind === "boolean" || state[feature.name] === null) return [];
    const now = plain(feature, state[feature.name]);
    const around = cells(feature);
    const same = around.map((cell) => {
      const value = nearest(feature, cell, now);
      return value === null || labelWith({ feature, value: written(feature, value) }) === index;
    });
    let first = around.findIndex((cell) => (cell.low === cell.high ? now === cell.low : now > cell.low && now < cell.high));
    let last = first;
    if (first < 0) return [];
    while (first > 0 && same[first - 1]) first -= 1;
    while (last < around.length - 1 && same[last + 1]) last += 1;
    const low = around[first], high = around[last], say = (value) => shown(feature, written(feature, value));
    const parts = [];
    if (low.low !== -Infinity) parts.push(`${low.low === low.high ? "from" : "above"} ${say(low.low)}`);
    if (high.high !== Infinity) parts.push(`${high.low === high.high ? "up to" : "below"} ${say(high.high)}`);
    return parts.length ? [`${feature.name} ${parts.join(", ")}`] : [];
  });
  // Why: the questions of a tree with their answers, from the first to the last; of a rule set, the rules that hold.
  const isTree = program.decision.kind === "tree";
  const MOST_QUESTIONS = 12;
  const questions = () => {
    const way = [];
    let node = program.decision.nodes[0];
    while ("clause" in node) {
      const answer = holds(program, node.clause, state);
      way.push([node.clause, answer]);
      node = program.decision.nodes[answer ? node.then : node.otherwise];
    }
    return way.slice(-MOST_QUESTIONS);
  };
  const update = () => {
    const answer = score(state);
    const answers = isTree ? questions() : answer.held.map((clause) => [clause, true]);
    const box = at("try-answer");
    box.dataset.index = answer.index;
    box.dataset.probabilities = JSON.stringify(answer.probabilities);
    box.dataset.held = JSON.stringify(answer.held);
    const lines = CLASSES.map((label, index) => make("li", {}, `${label}: ${(100 * answer.probabilities[index]).toFixed(1)} %`, bar(answer.probabilities[index], index)));
    const held = answers.map(([clause, holds]) => make("li", {}, make("span", { class: "soft", text: `C${clause} ` }), clauses[clause].text, ...(isTree ? [": ", make("strong", { text: holds ? "yes" : "no" })] : [])));
    const flips = smallestChanges(answer.index).map((changes) => {
      const label = CLASSES[labelWith(...changes)];
      const apply = () => {
        for (const change of changes) state[change.feature.name] = change.value;
        for (const { write, feature } of controls.values()) write(state[feature.name]);
        update();
        at("try-answer").focus();
      };
      return make("li", {}, `${changes.map(changeText).join(" and ")} gives ${label} `, make("button", { type: "button", text: "try", onclick: apply, "aria-label": `try ${changes.map(changeText).join(" and ")}` }));
    });
    fill(box, make("p", { class: `decision class${Math.min(answer.index, 5)}-text` }, target === null ? "The rules answer " : `${target}: `, make("strong", { text: String(answer.label) })), make("ul", { class: "shares" }, ...lines));
    fill(at("try-held"), list(held, isTree ? "There is no question: every row gets this answer." : "No rule holds: this is the answer where none does."));
    fill(at("try-flips"), list(flips, "No change of one or two values does, as far as was searched."));
    fill(at("try-stays"), list(stays(answer.index).map((text) => make("li", { text })), "No number or date has to stay where it is."));
    for (const each of controls.values()) drawStrip(each);
    drawRules();
  };

  // The rules as a table that can be sorted and filtered; pointing at one shows its rows among the examples.
  let order = "number";
  const rowsOf = (clause) => examples.filter((example) => holds(program, clause, example.row));
  const counts = clauses.map((_, clause) => rowsOf(clause).length);
  const orders = { number: (a, b) => a - b, rows: (a, b) => counts[b] - counts[a] || a - b, here: (a, b) => holds(program, b, state) - holds(program, a, state) || a - b };
  const drawRules = () => {
    const wanted = at("try-filter").value.toLowerCase();
    const rows = clauses.map((_, clause) => clause).filter((clause) => clauses[clause].text.toLowerCase().includes(wanted)).sort(orders[order]);
    fill(at("try-rules"), ...rows.map((clause) => {
      const show = () => showRows(clause);
      const name = make("button", { type: "button", class: "plain", text: `C${clause}`, onclick: show, onfocus: show, "aria-describedby": "try-rows" });
      const cell = make("td", { text: holds(program, clause, state) ? "yes" : "no" });
      const text = make("th", { scope: "row" }, clauses[clause].text);
      return make("tr", { onmouseenter: show }, make("td", {}, name), text, cell, ...(examples.length ? [make("td", { class: "number", text: `${counts[clause]} of ${examples.length}` })] : []));
    }));
  };
  const showRows = (clause) => {
    const rows = rowsOf(clause);
    const names = rows.slice(0, 12).map((example) => example.name).join(", ");
    if (examples.length) at("try-rows").textContent = `C${clause} holds on ${rows.length} of ${examples.length} examples${names ? `: ${names}` : ""}${rows.length > 12 ? ", …" : ""}`;
  };

  const byCodePoints = (a, b) => {
    const [first, second] = [[...a], [...b]].map((text) => text.map((letter) => letter.codePointAt(0)));
    const place = first.findIndex((code, at) => code !== second[at]);
    return place < 0 ? first.length - second.length : first[place] - (second[place] ?? -1);
  };

  // Editing: one rule at a time; rows that move, a program file, and the command that proves what changed.
  const hex = (value) => ({ hex: `${value < 0 ? "-" : ""}0x${Math.abs(value).toString(16)}`, decimal: String(value) });
  const editor = () => {
    const clause = Number(at("edit-clause").value);
    const parts = edited.clauses[clause].map((atom, place) => {
      const feature = features[atom.feature], id = `edit-${place}`;
      if (atom.values) {
        const boxes = feature.kind === "boolean" ? [] : feature.texts.map((text) => {
          const box = make("input", { type: "checkbox" });
          box.checked = atom.values.includes(text);
          box.addEventListener("input", () => {
            const values = feature.texts.filter((each) => (each === text ? box.checked : atom.values.includes(each)));
            if (values.length) atom.values = values.sort(byCodePoints);
            else box.checked = true;
            moved();
          });
          return make("label", { class: "gap" }, box, ` ${text}`);
        });
        const what = feature.kind === "boolean" ? (atom.negated ? "is not true" : "is true") : atom.negated ? "is none of" : "is one of";
        return make("fieldset", {}, make("legend", { text: `${feature.name} ${what}` }), ...boxes);
      }
      const fields = ["lo", "hi"].filter((side) => atom[side]).map((side) => {
        const type = feature.kind === "date" ? "date" : feature.kind === "timestamp" ? "datetime-local" : "number";
        const field = make("input", { type, step: type === "number" ? "any" : "1", id: `${id}-${side}` });
        field.value = written(feature, number(atom[side]));
        field.addEventListener("input", () => {
          const value = field.value === "" ? NaN : plain(feature, type === "number" ? Number(field.value) : field.value);
          const other = { ...atom, [side]: hex(value) };
          if (!Number.isFinite(value) || (other.lo && other.hi && number(other.lo) >= number(other.hi))) return field.setAttribute("aria-invalid", "true");
          field.removeAttribute("aria-invalid");
          atom[side] = hex(value);
          moved();
        });
        return make("label", { class: "gap" }, side === "lo" ? "from " : "up to ", field);
      });
      return make("fieldset", {}, make("legend", { text: feature.name }), ...fields);
    });
    if (edited.decision.kind === "scorecard") {
      const fields = CLASSES.map((label, index) => {
        const field = make("input", { type: "number", step: "1" });
        field.value = edited.decision.points[clause][index];
        field.addEventListener("input", () => {
          const points = Number(field.value);
          if (!Number.isSafeInteger(points) || field.value === "") return field.setAttribute("aria-invalid", "true");
          field.removeAttribute("aria-invalid");
          edited.decision.points[clause][index] = points;
          moved();
        });
        return make("label", { class: "gap" }, `${label} `, field);
      });
      parts.push(make("fieldset", {}, make("legend", { text: "points" }), ...fields));
    }
    fill(at("edit-atoms"), ...parts);
  };
  const moved = () => {
    const moves = examples.flatMap(({ name, row }) => {
      const before = decide(program, row), after = decide(edited, row);
      return before === after ? [] : [`${name}: ${CLASSES[before]} → ${CLASSES[after]}`];
    });
    const changed = JSON.stringify(edited) !== JSON.stringify(program);
    at("edit-moves").dataset.moved = moves.length;
    const text = !changed ? "Nothing has been changed." : examples.length ? `${moves.length} of ${examples.length} examples get another answer.` : "Changed. This page has no example rows to show whom it moves (gbfl report --examples TABLE embeds some).";
    fill(at("edit-moves"), make("p", { text }), ...(moves.length ? [make("ul", {}, ...moves.slice(0, 20).map((line) => make("li", { text: line })))] : []));
    at("edit-save").disabled = !changed;
  };
  const save = () => {
    const text = `${JSON.stringify({ ...edited, digest: null, metadata_digest: null, metadata: { edited_from: program.digest } }, null, 1)}\n`;
    const link = make("a", { download: "edited.gbfl.json", href: URL.createObjectURL(new Blob([text], { type: "application/json" })) });
    at("edit-text").value = text;
    link.click();
    URL.revokeObjectURL(link.href);
  };

  // Putting it together.
  const start = (row) => {
    for (const feature of used) state[feature.name] = row ? row[feature.name] ?? null : usual(feature);
    for (const { write, feature } of controls.values()) write(state[feature.name]);
    update();
  };
  at("try-controls").append(...used.map(control));
  examples.forEach((example, place) => at("try-example").append(make("option", { value: String(place), text: example.name })));
  at("try-example").append(make("option", { value: "-1", text: "a row of your own" }));
  at("try-example").addEventListener("input", () => start(examples[Number(at("try-example").value)]?.row));
  at("try-filter").addEventListener("input", drawRules);
  for (const button of document.querySelectorAll("#try [data-order]"))
    button.addEventListener("click", () => {
      order = button.dataset.order;
      for (const each of document.querySelectorAll("#try [data-order]")) each.closest("th").setAttribute("aria-sort", each === button ? "ascending" : "none");
      drawRules();
    });
  clauses.forEach((clause, place) => at("edit-clause").append(make("option", { value: String(place), text: `C${place} ${clause.text}`.slice(0, 90) })));
  at("edit-clause").addEventListener("input", editor);
  at("edit-save").addEventListener("click", save);
  at("edit-reset").addEventListener("click", () => {
    edited = JSON.parse(JSON.stringify(program));
    editor();
    moved();
  });
  if (isTree) at("try-why").textContent = "Why: the questions it was asked";
  if (!examples.length) {
    // without rows there is nothing to count, to point at or to move
    document.querySelector("#try [data-order=rows]").closest("th").remove();
    at("try-caption").textContent = "The rules, and whether each holds for the values above";
  }
  at("edit-command").textContent = `gbfl diff ${file} edited.gbfl.json`;
  if (clauses.length) editor();
  else at("edit").hidden = true;
  moved();
  at("try").hidden = false;
  at("try-link").hidden = false;
  start(examples[0]?.row);
}
