/* One run as a dialog with its timeline. Everything that a model or a tool wrote becomes a text node, never markup. */
(() => {
  const dialog = document.getElementById("transcript");
  const body = document.getElementById("transcript-body");
  const title = document.getElementById("transcript-title");
  const sub = document.getElementById("transcript-sub");
  const previous = document.getElementById("previous");
  const next = document.getElementById("next");
  const LONG_LINES = 14;
  const LONG_TEXT = 1200;
  const SHORT_TEXT = 120;
  const ROLES = new Set(["planner", "executor", "critic", "selector"]);
  const SVG = "http://www.w3.org/2000/svg";
  let current = null;
  let places = null;

  const text = place => (place === undefined ? null : report.data().texts[place]);
  const count = number => (typeof number === "number" ? number.toLocaleString("en-US") : "?");
  const words = name => String(name).replaceAll("_", " ");
  const plural = (number, thing) => `${count(number)} ${number === 1 ? thing : `${thing}s`}`;

  function duration(ms) {
    if (ms < 1000) return `${ms} ms`;
    if (ms < 119500) return `${(ms / 1000).toFixed(1)} s`;
    return `${Math.floor(ms / 60000)} min ${Math.round((ms % 60000) / 1000)} s`;
  }

  function make(name, className, ...children) {
    const made = document.createElement(name);
    if (className) made.className = className;
    made.append(...children.filter(child => child !== null && child !== undefined));
    return made;
  }

  function verdictOf(run) {
    const made = make("span", `verdict v-${run.v.replaceAll(" ", "-")}`, run.v);
    const row = [...document.querySelectorAll("#table tbody tr")].find(one => one.dataset.run === run.c);
    const mark = row && row.querySelector(".mark");
    if (mark) made.prepend(mark.cloneNode(true));
    return made;
  }

  function found(key) {
    if (places === null) places = new Map(report.data().runs.map((run, place) => [run.c, place]));
    return places.has(key) ? report.data().runs[places.get(key)] : null;
  }

  function wanted() {
    // ids have no character that an address would escape
    const match = /^#run\/([^/]+)\/(\d+)$/.exec(location.hash);
    return match ? `${match[1]}#${match[2]}` : null;
  }

  function hashOf(key) {
    const [task, attempt] = key.split("#");
    return `#run/${task}/${attempt}`;
  }

  /* --- the head of a run --- */
  function named(name, value, className) {
    const long = value.length > SHORT_TEXT || value.includes("\n");
    const shown = long ? collapsible(value, "") : make("p", className || "text", value);
    return make("div", long ? "whole" : "", make("h3", "", name), shown);
  }

  function head(run) {
    const parts = make("div", "qa");
    const question = make("div", "", make("h3", "", "Question"));
    question.append(collapsible(text(run.q) || "–", ""));
    parts.append(question);
    const answers = make("div", "answers");
    answers.append(named("Answer", text(run.w) === null ? "none" : text(run.w)));
    if (run.g !== undefined) answers.append(named("Gold answer", text(run.g) || "none"));
    if (run.r !== undefined) answers.append(named("Why", text(run.r), "faint"));
    if (run.n !== undefined) answers.append(named("Attachment", text(run.n), "mono"));
    parts.append(answers);
    return parts;
  }

  function seen(run) {
    if (!run.s) return null;
    const list = make("ul", "seen");
    for (const one of run.s) {
      const item = make("li", "", make("span", `pill ${one.c}`, one.c), " ", make("b", "", words(one.m)), " ", text(one.d));
      if (one.b !== "rules") item.append(make("span", "faint", ` (${one.b})`));
      for (const seq of one.q) {
        const link = make("button", "link", `event ${seq}`);
        link.type = "button";
        link.addEventListener("click", () => goTo(seq));
        item.append(" ", link);
      }
      list.append(item);
    }
    return list;
  }

  function goTo(seq) {
    for (const old of body.querySelectorAll(".shown-now")) old.classList.remove("shown-now");
    const event = body.querySelector(`.ev[data-n="${seq}"]`);
    if (!event) return;
    event.classList.add("shown-now");
    event.tabIndex = -1;
    event.focus({ preventScroll: true });
    event.scrollIntoView({ block: "center" });
  }

  function facts(one) {
    const line = make("p", "run-facts");
    const fact = (value, name) => line.append(make("span", "", make("b", "", value), ` ${name}`));
    line.append(make("span", "", one.s, one.b ? `, ended by ${words(one.b)}` : "", one.x ? `, ${words(one.x)}` : ""));
    fact(count(one.t), one.t === 1 ? "turn" : "turns");
    fact(count(one.k), one.k === 1 ? "tool call" : "tool calls");
    if (one.e) line.append(make("span", "failed-word", plural(one.e, "tool error")));
    if (one.i !== undefined || one.o !== undefined) fact(`${count(one.i)} + ${count(one.o)}`, "tokens shown below");
    if (one.I !== undefined || one.O !== undefined) fact(`${count(one.I)} + ${count(one.O)}`, `tokens in ${plural(one.c, "request")}`);
    if (one.d !== undefined) fact(duration(one.d), "");
    if (one.p !== undefined) fact(one.p.toPrecision(4), "cost");
    if (one.h) fact(one.h, "sandbox");
    line.append(make("span", "faint", `began ${one.a}`));
    return line;
  }

  /* --- texts --- */
  function withAnswerMarked(pre, said) {
    const lines = said.split("\n");
    lines.forEach((line, place) => {
      if (place) pre.append("\n");
      pre.append(/^\W{0,8}FINAL ANSWER\s*[:：]/.test(line) ? make("mark", "", line) : line);
    });
  }

  function collapsible(said, boxClass, marked) {
    const pre = make("pre", "");
    if (marked) withAnswerMarked(pre, said);
    else pre.append(said);
    const box = make("div", `box ${boxClass}`, pre);
    folded(box, said);
    return box;
  }

  function folded(box, said) {
    const lines = said.split("\n").length;
    if (lines <= LONG_LINES && said.length <= LONG_TEXT) return;
    box.classList.add("long");
    const more = make("button", "link more", "");
    more.type = "button";
    const say = open => {
      box.classList.toggle("open", open);
      more.setAttribute("aria-expanded", String(open));
      more.textContent = open ? "Show less" : `Show all ${count(said.length)} characters`;
    };
    more.addEventListener("click", () => say(!box.classList.contains("open")));
    say(false);
    box.append(more);
  }

  function argumentsBox(json) {
    let value;
    try { value = JSON.parse(json); } catch { value = null; }
    if (value === null || typeof value !== "object" || Array.isArray(value)) return collapsible(json, "");
    const entries = Object.entries(value);
    if (entries.length === 0) return make("p", "faint", "no arguments");
    const box = make("div", "box");
    const all = [];
    for (const [name, argument] of entries) {
      const said = typeof argument === "string" ? argument : JSON.stringify(argument, null, 2);
      all.push(said);
      box.append(make("p", "argument", name), make("pre", "", said));
    }
    folded(box, all.join("\n"));
    return box;
  }

  /* what the database keeps apart from the row of its event, and what this page leaves out */
  function cutNote(event, run) {
    const place = event.a === undefined || event.k === "final_answer" ? event.t : event.a;
    if (place === undefined) return null;
    const kept = text(place).length;
    const whole = Math.max(event.l || 0, report.data().lengths[place] || 0);
    if (whole > kept) {
      return make("p", "cut", `${count(kept)} of ${count(whole)} characters are shown; all: `,
        make("code", "", `eval-pipeline trace ${run} --full`));
    }
    return event.x ? make("p", "cut", "Too long for the row of its event; the whole is kept apart and shown here.") : null;
  }

  /* --- events --- */
  function who(name) {
    return make("span", `who${ROLES.has(name) ? ` role-${name}` : ""}`, name);
  }

  function meta(event) {
    const parts = [];
    if (event.i !== undefined || event.u !== undefined) parts.push(`${count(event.i)} + ${count(event.u)} tokens`);
    if (event.m !== undefined) parts.push(`+${duration(event.m)}`);
    return parts.length ? make("span", "meta", parts.join(" · ")) : null;
  }

  const DRAWN = {
    selector_decision(event) {
      const target = text(event.g) || "nobody";
      const own = text(event.r) === "FALLBACK";
      return ["select", [
        who(own ? "AutoGen by itself" : text(event.s)), make("span", "", "→"), who(target),
        make("span", "reason", text(event.r)),
        make("span", "summary", text(event.t) === null ? "" : text(event.t)),
      ], []];
    },
    tool_call(event) {
      return ["call", [who(text(event.s)), make("span", "what", "calls ", make("code", "", text(event.o)))],
        [argumentsBox(text(event.a) || "")]];
    },
    tool_result(event) {
      return ["result", [make("code", "", text(event.o) || "the tool"), make("span", "what", "returned")],
        [collapsible(text(event.t) || "(nothing)", "")]];
    },
    tool_error(event) {
      return ["failed", [make("code", "", text(event.o) || "the tool"),
        make("span", "what", "failed"), make("span", "reason", text(event.e))],
        [collapsible(text(event.t) || "(nothing)", "")]];
    },
    final_answer(event) {
      const said = text(event.t);
      return ["end", [make("b", "", "The end"), make("span", "", event.b === undefined ? "" : words(text(event.b))),
        make("span", "faint", text(event.a) || "")],
        [make("div", "box", said === null ? make("span", "faint", "no answer was captured") : make("b", "", said))]];
    },
    handoff(event) {
      return ["", [who(text(event.s)), make("span", "", "hands over to"), who(text(event.g) || "nobody")],
        text(event.t) ? [collapsible(text(event.t), "")] : []];
    },
    evaluator_score(event) {
      return ["", [who(text(event.s)), make("span", "", "scores")], [collapsible(text(event.t) || "", "")]];
    },
    agent_message(event) {
      const said = text(event.t);
      return ["", [who(text(event.s))], [said ? collapsible(said, "", true) : make("p", "faint", "(nothing)")]];
    },
  };

  function drawn(event, before, run, flags) {
    const repeats = before && event.k === "agent_message" && event.t !== undefined && event.t === before.t
      && (before.k === "tool_result" || before.k === "tool_error");
    const [className, headParts, parts] = (DRAWN[event.k] || DRAWN.agent_message)(event);
    const item = make("li", `ev ${className}`, make("span", "n", String(event.n)));
    item.dataset.n = event.n;
    const line = make("div", "ev-head", ...headParts);
    for (const flag of flags.get(event.n) || []) line.append(make("span", "flag", words(flag)));
    line.append(meta(event) || "");
    item.append(line);
    if (repeats) {
      item.append(make("p", "repeats", "repeats what the tool said above"));
      return item;
    }
    item.append(...parts);
    const note = cutNote(event, run);
    if (note) item.append(note);
    return item;
  }

  function timeline(run, one) {
    const holder = make("div", "");
    if (one.m !== undefined) holder.append(make("p", "wrongly", text(one.m)));
    holder.append(facts(one));
    const notes = [];
    if (one.f) notes.push(`AutoGen chose a speaker by itself ${plural(one.f, "time")}.`);
    if (one.q) notes.push(`${plural(one.q, "event")} could not be stored.`);
    if (one.r) notes.push(`${plural(one.r, "character")} could not be stored as they were.`);
    if (notes.length) holder.append(make("p", "cut", notes.join(" ")));
    const open = make("button", "link", "Unfold all texts");
    open.type = "button";
    const line = make("div", "tools-line", make("h3", "", plural(one.E.length, "event")), make("code", "command", `eval-pipeline trace ${one.id}`));
    const list = make("ol", "timeline");
    const flags = new Map();
    if (one.v) for (const signal of run.s || []) for (const seq of signal.q) flags.set(seq, [...(flags.get(seq) || []), signal.m]);
    one.E.forEach((event, place) => list.append(drawn(event, one.E[place - 1], one.id, flags)));
    if (list.querySelector(".long")) {
      line.append(open);
      open.addEventListener("click", () => {
        for (const more of list.querySelectorAll(".more[aria-expanded=false]")) more.click();
      });
    }
    holder.append(line, list);
    if (one.A !== undefined) {
      holder.append(make("p", "left-out", `This trace is archived: ${text(one.A)}. eval-pipeline archive --restore brings it back.`));
    }
    if (one.l) holder.append(make("p", "left-out", `${plural(one.l, "further event")} are in the database; eval-pipeline trace shows them.`));
    return holder;
  }

  function tries(run, show) {
    if (run.y.length < 2) return null;
    const buttons = make("div", "tries");
    buttons.setAttribute("role", "group");
    buttons.setAttribute("aria-label", "Tries");
    run.y.forEach((one, place) => {
      const button = make("button", "", `Try ${one.n}: ${one.x ? words(one.x) : one.s}${one.v ? " (counts)" : ""}`);
      button.type = "button";
      button.setAttribute("aria-pressed", String(place === 0));
      button.addEventListener("click", () => {
        for (const other of buttons.children) other.setAttribute("aria-pressed", String(other === button));
        show(one);
      });
      buttons.append(button);
    });
    return buttons;
  }

  function show(key) {
    const run = found(key);
    if (run === null) return;
    current = key;
    title.textContent = run.c;
    sub.replaceChildren(verdictOf(run), ` · level ${run.l}`);
    if (body.hasAttribute("data-scripted")) sub.append(" · ", make("span", "story", "scripted model"));
    const place = make("div", "");
    const put = one => place.replaceChildren(timeline(run, one));
    body.replaceChildren(head(run));
    for (const part of [seen(run), tries(run, put)]) if (part) body.append(part);
    body.append(place);
    if (run.y.length) put(run.y[0]);
    else place.append(make("p", "faint", "This run has not started."));
    const order = report.visible();
    const at = order.indexOf(key);
    previous.disabled = at <= 0;
    next.disabled = at < 0 || at === order.length - 1;
    if (!dialog.open) dialog.showModal();
    document.body.classList.add("reading");
    dialog.scrollTop = 0;
    title.focus({ preventScroll: true });
  }

  function step(by) {
    const order = report.visible();
    const key = order[order.indexOf(current) + by];
    if (key !== undefined) location.replace(hashOf(key));
  }

  function follow() {
    const key = wanted();
    if (key !== null && found(key) !== null) show(key);
    else if (dialog.open) dialog.close();
  }

  previous.addEventListener("click", () => step(-1));
  next.addEventListener("click", () => step(1));
  document.getElementById("close").addEventListener("click", () => dialog.close());
  dialog.addEventListener("click", event => { if (event.target === dialog) dialog.close(); });
  dialog.addEventListener("close", () => {
    document.body.classList.remove("reading");
    body.replaceChildren();
    if (wanted() !== null) history.replaceState(null, "", "#runs");
  });
  dialog.addEventListener("keydown", event => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "j") step(1);
    if (event.key === "k") step(-1);
  });
  for (const point of document.querySelectorAll("[data-run].point")) {
    point.addEventListener("click", () => { location.hash = hashOf(point.dataset.run); });
  }
  addEventListener("hashchange", follow);
  follow();
})();
