"use strict";
// Themes, tables that are sorted, filtered and cut into pages, and legends that hide lines. Without it all is readable.
(() => {
  const PAGE = 100, LONG = 48;
  const root = document.documentElement;

  const make = (name, properties = {}, ...children) => {
    const element = Object.assign(document.createElement(name), properties);
    element.append(...children);
    return element;
  };

  const stored = {
    get: () => { try { return localStorage.getItem("ddlopt-theme"); } catch { return null; } },
    set: (theme) => { try { localStorage.setItem("ddlopt-theme", theme); } catch { /* not kept, then */ } },
  };
  if (["light", "dark"].includes(stored.get())) root.dataset.theme = stored.get();

  const isDark = () =>
    root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;

  function addThemeButton() {
    const button = make("button", { type: "button", className: "theme" });
    const name = () => { button.textContent = isDark() ? "Light colours" : "Dark colours"; };
    button.addEventListener("click", () => {
      root.dataset.theme = isDark() ? "light" : "dark";
      stored.set(root.dataset.theme);
      name();
    });
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", name);
    name();
    document.querySelector("nav").append(button);
  }

  // One row: its texts, what it is sorted by (null where there is no figure), and its element, made when it is shown.
  const ofElement = (element) => ({
    texts: [...element.cells].map((cell) => cell.textContent),
    keys: [...element.cells].map((cell) =>
      cell.classList.contains("n") ? (cell.dataset.v === undefined ? null : Number(cell.dataset.v)) : cell.textContent),
    element: () => element,
  });

  const ofData = (cells, numeric) => ({
    texts: cells.map((cell) => cell[0]),
    keys: cells.map((cell, place) => (numeric[place] ? cell[1] : cell[0])),
    element: () => make("tr", {}, ...cells.map(([text, , href], place) =>
      make("td", { className: numeric[place] ? "n" : text.length > LONG ? "w" : "" }, href ? make("a", { href, textContent: text }) : text))),
  });

  const compare = (one, other) => {
    if (typeof one === "string") return one.localeCompare(other, "en", { numeric: true });
    return one - other;
  };

  class Table {
    constructor(holder) {
      this.holder = holder;
      this.table = holder.querySelector("table");
      this.body = this.table.tBodies[0];
      this.heads = [...this.table.tHead.rows[0].cells];
      const numeric = this.heads.map((head) => head.classList.contains("number"));
      const data = holder.querySelector("script[type='application/json']");
      this.rows = data ? JSON.parse(data.textContent).map((cells) => ofData(cells, numeric))
        : [...this.body.rows].map(ofElement);
      this.rows.forEach((row) => { row.search = row.texts.join("\n").toLowerCase(); });
      this.shown = this.rows;
      this.page = 0;
      this.heads.forEach((head, place) => this.makeSortable(head, place));
      if (this.rows.length > 4) this.addTools();
      this.draw();
    }

    makeSortable(head, place) {
      const button = make("button", { type: "button", textContent: head.textContent });
      head.replaceChildren(button);
      head.setAttribute("aria-sort", "none");
      button.addEventListener("click", () => {
        const falling = head.getAttribute("aria-sort") === "ascending";
        this.heads.forEach((each) => each.setAttribute("aria-sort", "none"));
        head.setAttribute("aria-sort", falling ? "descending" : "ascending");
        this.rows = this.rows.map((row, was) => [row, was]).sort(([a, i], [b, j]) => {
          const one = a.keys[place], other = b.keys[place];
          if (one === null || other === null) return (one === null) - (other === null) || i - j;
          return (falling ? -1 : 1) * compare(one, other) || i - j;
        }).map(([row]) => row);
        this.filter();
      });
    }

    addTools() {
      const caption = this.table.caption ? this.table.caption.textContent : "table";
      this.words = make("input", { type: "search", id: `${this.holder.id}-filter`, placeholder: "words, all must occur" });
      this.words.addEventListener("input", () => this.filter());
      this.choices = [];
      const tools = make("div", { className: "tools" }, make("label", { htmlFor: this.words.id, textContent: "Filter" }), this.words);
      this.heads.forEach((head, place) => {
        if (!("choice" in head.dataset)) return;
        const title = head.textContent;
        const texts = [...new Set(this.rows.map((row) => row.texts[place]))].sort((a, b) => compare(a, b));
        if (texts.length < 2) return;
        const select = make("select", { id: `${this.holder.id}-choice-${place}` },
          make("option", { value: "", textContent: "all" }),
          ...texts.map((text) => make("option", { value: `=${text}`, textContent: text })));
        select.addEventListener("change", () => this.filter());
        this.choices.push([place, select]);
        tools.append(make("label", { htmlFor: select.id, textContent: title }), select);
      });
      this.count = make("span", { className: "count" });
      this.count.setAttribute("role", "status");
      tools.append(this.count);
      if (this.rows.length > PAGE) {
        this.back = make("button", { type: "button", textContent: "Previous" });
        this.next = make("button", { type: "button", textContent: "Next" });
        this.back.setAttribute("aria-label", `Previous rows of ${caption}`);
        this.next.setAttribute("aria-label", `Next rows of ${caption}`);
        this.back.addEventListener("click", () => { this.page -= 1; this.draw(); });
        this.next.addEventListener("click", () => { this.page += 1; this.draw(); });
        tools.append(this.back, this.next);
      }
      this.holder.prepend(tools);
    }

    filter() {
      const words = this.words ? this.words.value.toLowerCase().split(/\s+/).filter(Boolean) : [];
      const chosen = (this.choices || []).filter(([, select]) => select.value);
      this.shown = this.rows.filter((row) => words.every((word) => row.search.includes(word))
        && chosen.every(([place, select]) => `=${row.texts[place]}` === select.value));
      this.page = 0;
      this.draw();
    }

    draw() {
      const from = this.page * PAGE, to = Math.min(from + PAGE, this.shown.length);
      this.body.replaceChildren(...this.shown.slice(from, to).map((row) => row.element()));
      if (!this.count) return;
      const all = this.shown.length === this.rows.length ? `${this.rows.length} rows`
        : `${this.shown.length} of ${this.rows.length} rows`;
      this.count.textContent = this.shown.length > PAGE ? `${from + 1} to ${to} of ${all}` : all;
      if (this.back) {
        this.back.disabled = this.page === 0;
        this.next.disabled = to >= this.shown.length;
      }
    }
  }

  // A press hides a line and shows it again; hovering over its name or focusing it brings it out.
  function addLegend(figure) {
    for (const item of figure.querySelectorAll(".legend li")) {
      const line = figure.querySelector(`.line[data-line="${item.dataset.line}"]`);
      const button = make("button", { type: "button" });
      button.append(...item.childNodes);
      button.setAttribute("aria-pressed", "true");
      item.append(button);
      button.addEventListener("click", () => {
        const off = line.classList.toggle("off");
        button.setAttribute("aria-pressed", String(!off));
      });
      const bring = (on) => () => { line.classList.toggle("on", on); figure.classList.toggle("chosen", on); };
      for (const event of ["mouseenter", "focus"]) button.addEventListener(event, bring(true));
      for (const event of ["mouseleave", "blur"]) button.addEventListener(event, bring(false));
    }
  }

  document.addEventListener("DOMContentLoaded", () => {
    addThemeButton();
    for (const link of document.querySelectorAll("nav a")) {
      if (link.href === location.href.split("#")[0]) link.setAttribute("aria-current", "page");
    }
    document.querySelectorAll(".table").forEach((holder) => new Table(holder));
    document.querySelectorAll(".chart").forEach(addLegend);
  });
})();
