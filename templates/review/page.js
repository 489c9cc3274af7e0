"use strict";
// Everything there is to show was made beforehand: this only chooses which of it is seen.
{
  const root = document.documentElement, all = (query, of = document) => [...of.querySelectorAll(query)];
  const by = (id) => document.getElementById(id);
  const items = all("[data-item]"), switches = all("[data-switch]");
  const leftOut = new Set(document.body.dataset.leftOut.split(" ").filter(Boolean));
  const say = (text) => { if (by("state")) by("state").textContent = text; };

  // --- what is left out
  const command = () => {
    const ids = switches.flatMap((button) => button.closest(".entry").id).filter((id) => leftOut.has(id));
    return document.body.dataset.command + (ids.length ? ` --skip ${ids.join(",")}` : "");
  };
  const number = (file) => {
    let count = 0, plus = 0, minus = 0;
    for (const row of all(".r", file)) {
      const way = row.closest(".way");
      if (way && way.hidden) continue;
      const removed = row.classList.contains("del");
      if (removed) minus++; else count++;
      if (row.classList.contains("add")) plus++;
      row.children[1].textContent = removed ? "" : count;
    }
    const stat = file.querySelector(".stat");
    stat.querySelector(".plus").textContent = `+${plus}`;
    stat.querySelector(".minus").textContent = `−${minus}`;
  };
  const choose = () => {
    for (const button of switches) {
      button.setAttribute("aria-checked", String(!leftOut.has(button.closest(".entry").id)));
    }
    for (const block of all("[data-on]")) {
      const mask = block.dataset.on.split(" ").reduce((bits, id, at) => bits | (leftOut.has(id) ? 1 << at : 0), 0);
      for (const way of block.children) way.hidden = Number(way.dataset.mask) !== mask;
    }
    for (const file of all(".file")) if (file.querySelector(".stat .plus")) number(file);
    const count = leftOut.size;
    say(count ? `${count} ${count === 1 ? "change is" : "changes are"} left out.` : "Nothing is left out.");
    if (by("command")) by("command").textContent = command();
    if (by("all")) by("all").hidden = !count;
    mark();
  };
  const toggle = (button) => {
    const ids = button.dataset.ids.split(" "), out = !leftOut.has(ids[0]);
    for (const id of ids) if (out) leftOut.add(id); else leftOut.delete(id);
    choose();
  };
  for (const button of switches) button.addEventListener("click", () => toggle(button));
  by("all")?.addEventListener("click", () => { leftOut.clear(); choose(); });

  // --- the command
  const copy = async () => {
    const box = by("command");
    if (!box) return;
    const done = () => { by("copy").textContent = "Copied"; setTimeout(() => { by("copy").textContent = "Copy"; }, 1500); };
    try {
      await navigator.clipboard.writeText(box.textContent);
      done();
    } catch {
      box.focus();
      getSelection().selectAllChildren(box);
      let copied = false;
      try { copied = document.execCommand("copy"); } catch { /* the text stays selected */ }
      if (copied) done(); else say("The command is selected: copy it with Ctrl+C.");
    }
  };
  by("copy")?.addEventListener("click", copy);

  // --- the current change
  let current = -1;
  const mark = () => {
    for (const row of all(".at")) row.classList.remove("at");
    const id = items[current]?.id;
    for (const row of id ? all(".r[data-c]") : []) if (row.dataset.c.split(" ").includes(id)) row.classList.add("at");
  };
  const seen = (element) => element.checkVisibility ? element.checkVisibility() : element.offsetParent !== null;
  const go = (index) => {
    items[current]?.classList.remove("current");
    items[current]?.removeAttribute("aria-current");
    current = index;
    const item = items[current];
    item.classList.add("current");
    item.setAttribute("aria-current", "true");
    mark();
    item.focus({ preventScroll: true });
    const row = all(".at", item.closest(".hunk")).find(seen) ?? all(".at").find(seen);
    (row ?? item).scrollIntoView({ block: row ? "center" : "nearest" });
    const box = item.getBoundingClientRect();
    if (box.top < 0 || box.bottom > innerHeight) item.scrollIntoView({ block: "nearest" });
  };
  const step = (by_) => {
    for (let next = current + by_; next >= 0 && next < items.length; next += by_) if (seen(items[next])) return go(next);
  };
  for (const [index, item] of items.entries()) item.addEventListener("click", () => {
    if (current === index) return;
    items[current]?.classList.remove("current");
    items[current]?.removeAttribute("aria-current");
    current = index;
    item.classList.add("current");
    item.setAttribute("aria-current", "true");
    mark();
  });

  // --- the text of a rule, beside the change
  for (const details of all("details.text")) details.addEventListener("toggle", () => {
    const text = by(`rule-${details.dataset.rule}`)?.querySelector(".rule");
    if (details.open && text && !details.querySelector(".rule")) details.querySelector("p").replaceWith(text.cloneNode(true));
  });

  // --- view
  const view = (split) => {
    root.classList.toggle("split", split);
    for (const file of all(".file:not(.unchanged)")) file.classList.toggle("halves", split);
    by("split").setAttribute("aria-pressed", String(split));
    by("unified").setAttribute("aria-pressed", String(!split));
    if (!split || root.dataset.twins) return;
    root.dataset.twins = "made";
    for (const row of all(".file:not(.unchanged) .r:not(.add):not(.del)")) {
      const twin = row.lastElementChild.cloneNode(true);
      twin.className = "twin";
      twin.setAttribute("aria-hidden", "true");
      row.append(twin);
    }
  };
  by("split")?.addEventListener("click", () => view(true));
  by("unified")?.addEventListener("click", () => view(false));
  const dark = () => root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  const named = () => { if (by("theme")) by("theme").textContent = dark() ? "Light" : "Dark"; };
  by("theme")?.addEventListener("click", () => { root.dataset.theme = dark() ? "light" : "dark"; named(); });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", named);
  named();
  by("keys")?.addEventListener("click", () => by("help").showModal());
  // a fragment may name what is folded
  addEventListener("hashchange", () => by(location.hash.slice(1))?.closest("details")?.setAttribute("open", ""));

  // --- filters
  const pressed = (kind) => all(`[data-filter-${kind}][aria-pressed="true"]`).map((button) => button.getAttribute(`data-filter-${kind}`));
  const filter = () => {
    const levels = pressed("level"), families = pressed("family"), words = by("filter").value.toLowerCase().split(/\s+/).filter(Boolean);
    const any = levels.length + families.length + words.length > 0;
    const fits = (item) => {
      const { code, level } = item.dataset;
      const text = `${(item.closest(".card") ?? item).textContent} ${item.closest(".file")?.dataset.file ?? ""}`.toLowerCase();
      return (!levels.length || levels.includes(level)) && (!families.length || families.includes(code.slice(0, 4)))
        && words.every((word) => text.includes(word));
    };
    const wanted = new Set();
    for (const item of items) {
      item.hidden = any && !fits(item);
      if (!item.hidden) wanted.add(item.id);
    }
    for (const card of all(".card")) card.hidden = all(".entry", card).every((entry) => entry.hidden);
    for (const row of all(".r[data-c]")) row.classList.toggle("dim", any && !row.dataset.c.split(" ").some((id) => wanted.has(id)));
    for (const hunk of all(".hunk")) {
      const rows = all(".r[data-c]", hunk);
      hunk.hidden = any && !all("[data-item]", hunk).some((item) => !item.hidden) && rows.every((row) => row.classList.contains("dim"));
    }
    for (const fold of all(".fold")) fold.hidden = any;
    for (const file of all(".file")) file.hidden = any && all(".hunk", file).every((hunk) => hunk.hidden);
    for (const line of all(".todo li")) line.hidden = any && !fits(line);
    by("filtered").textContent = any ? `${wanted.size} of ${items.length} shown` : "";
  };
  for (const button of all("[data-filter-level], [data-filter-family]")) button.addEventListener("click", () => {
    button.setAttribute("aria-pressed", String(button.getAttribute("aria-pressed") !== "true"));
    filter();
  });
  by("filter")?.addEventListener("input", filter);

  // --- keys
  const keys = {
    j: () => step(1),
    k: () => step(-1),
    x: () => { const button = items[current]?.querySelector("[data-switch]"); if (button) toggle(button); },
    o: () => {
      const card = items[current]?.closest(".card"), code = items[current]?.dataset.code;
      const details = card ? card.querySelector("details.text") : code && by(`rule-${code}`);
      if (!details) return;
      details.open = !details.open;
      if (details.open) details.scrollIntoView({ block: "nearest" });
    },
    u: () => { if (by("split")) view(!root.classList.contains("split")); },
    f: () => { const folds = all("details.fold"), open = folds.some((fold) => !fold.open); for (const fold of folds) fold.open = open; },
    c: () => { copy(); },
    "/": () => by("filter")?.focus(),
    "?": () => { const help = by("help"); if (help.open) help.close(); else help.showModal(); },
  };
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.target.matches("input")) { if (event.key === "Escape") event.target.blur(); return; }
    const act = keys[event.key];
    if (!act || (by("help").open && event.key !== "?")) return;
    event.preventDefault();
    act();
  });
}
