// Elements of the page, built without markup in strings.

export function element(tag, properties = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name === "class") made.className = value;
    else if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (name in made && name !== "list") made[name] = value;
    else made.setAttribute(name, value);
  }
  made.append(...children);
  return made;
}

export const byId = (id) => document.getElementById(id);

// A select with [value, text] pairs.
export function select(pairs, value, properties = {}) {
  const made = element("select", properties, ...pairs.map(([one, text]) => element("option", { value: one, textContent: text })));
  made.value = value;
  return made;
}

// An input under its label; a hint becomes its title and its description.
export function field(text, input, hint = "") {
  if (hint) input.title = hint;
  return element("label", { class: "field" }, element("span", { textContent: text }), input);
}

export function number(value, least, most, changed, properties = {}) {
  const input = element("input", { type: "number", min: least, max: most, step: 1, value, ...properties });
  input.addEventListener("change", () => {
    const given = Math.round(Number(input.value));
    const kept = Math.min(most, Math.max(least, Number.isFinite(given) ? given : value));
    input.value = kept;
    changed(kept);
  });
  return input;
}
