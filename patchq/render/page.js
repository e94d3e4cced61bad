"use strict";
const all = (query, from = document) => [...from.querySelectorAll(query)];
const natural = new Intl.Collator("en", { numeric: true });

for (const tools of all(".tools")) {
  const list = document.getElementById(tools.dataset.of);
  const items = [...list.children];
  const [words, pick, order, told] = all("input, select, output", tools);
  let texts;
  const choose = () => {
    texts ??= items.map(item => item.textContent.toLowerCase());
    const wanted = words.value.toLowerCase().split(/\s+/).filter(Boolean);
    let count = 0;
    items.forEach((item, at) => {
      const fits = (!pick.value || item.dataset.word === pick.value) &&
        wanted.every(word => texts[at].includes(word));
      item.hidden = !fits;
      count += fits;
    });
    told.textContent = `${count} of ${items.length}`;
  };
  const sort = () => {
    const by = order.value;
    const from = item => item.dataset[by];
    const signs = by === "age" ? -1 : 1;
    const sorted = by ? [...items].sort((a, b) => signs * natural.compare(from(a), from(b))) : items;
    list.append(...sorted);
  };
  words.addEventListener("input", choose);
  pick.addEventListener("input", choose);
  order.addEventListener("input", sort);
  told.textContent = `${items.length} of ${items.length}`;
  tools.hidden = false;
}

for (const table of all("table.sort")) {
  const body = table.tBodies[0];
  const heads = all("thead th", table);
  heads.forEach((head, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      const up = head.getAttribute("aria-sort") !== "ascending";
      heads.forEach(each => each.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", up ? "ascending" : "descending");
      const key = row => row.cells[column].textContent.trim();
      const keyed = [...body.rows].map(row => [key(row), row]);
      // What has nothing there stays below, whichever way it goes.
      keyed.sort(([a], [b]) => !a - !b || (up ? 1 : -1) * natural.compare(a, b));
      body.append(...keyed.map(([, row]) => row));
    });
  });
}
