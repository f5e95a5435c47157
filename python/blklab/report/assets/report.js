"use strict";
// The report is complete without this script; it adds tips, copying, and unfolding for print.
(() => {
  const tip = document.getElementById("tip");
  const showTip = (event) => {
    const source = event.target.closest?.("[data-tip]");
    if (!source) {
      tip.hidden = true;
      return;
    }
    tip.textContent = source.dataset.tip;
    tip.hidden = false;
    const gap = 14;
    const box = tip.getBoundingClientRect();
    const left = Math.min(event.clientX + gap, window.innerWidth - box.width - 4);
    const below = event.clientY + gap;
    const top = below + box.height > window.innerHeight ? event.clientY - gap - box.height : below;
    tip.style.left = `${Math.max(4, left)}px`;
    tip.style.top = `${Math.max(4, top)}px`;
  };
  document.addEventListener("pointermove", showTip, { passive: true });
  document.addEventListener("pointerdown", showTip, { passive: true });
  document.addEventListener("scroll", () => { tip.hidden = true; }, { passive: true });
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape") tip.hidden = true;
  });

  // Pointing at a scheduler in the legend, or pressing it, highlights it in all charts of its workload.
  for (const legend of document.querySelectorAll(".legend")) {
    const section = legend.closest(".workload");
    const groups = [...section.querySelectorAll("g.series")];
    const buttons = [...legend.querySelectorAll("button")];
    const dim = (name) => {
      for (const group of groups) group.classList.toggle("dimmed", name !== null && group.dataset.series !== name);
    };
    const pressed = () =>
      buttons.find((button) => button.getAttribute("aria-pressed") === "true")?.dataset.series ?? null;
    for (const button of buttons) {
      button.addEventListener("pointerenter", () => dim(button.dataset.series));
      button.addEventListener("pointerleave", () => dim(pressed()));
      button.addEventListener("click", () => {
        const wasPressed = button.getAttribute("aria-pressed") === "true";
        for (const other of buttons) other.setAttribute("aria-pressed", String(other === button && !wasPressed));
        dim(pressed());
      });
    }
  }

  // A file opened from disk may have no clipboard; then the command is selected instead.
  for (const button of document.querySelectorAll("button.copy")) {
    button.hidden = false;
    button.addEventListener("click", async () => {
      try {
        await navigator.clipboard.writeText(button.dataset.copy);
        button.textContent = "Copied";
      } catch {
        getSelection().selectAllChildren(button.parentElement.querySelector("code"));
        button.textContent = "Selected";
      }
      setTimeout(() => { button.textContent = "Copy"; }, 1600);
    });
  }

  const save = document.getElementById("save-data");
  if (save) save.hidden = false; // some pages have no figures to save
  save?.addEventListener("click", () => {
    const text = document.getElementById("blklab-data").textContent;
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([text], { type: "application/json" }));
    link.download = save.dataset.name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  });

  // A link to a folded workload unfolds it; printing unfolds everything, where the page is not one sheet on paper.
  const unfold = () => {
    const target = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (target?.tagName === "DETAILS") target.open = true;
  };
  addEventListener("hashchange", unfold);
  unfold();
  let folded = [];
  addEventListener("beforeprint", () => {
    folded = [...document.querySelectorAll("body:not(.one-sheet) details:not([open])")];
    for (const details of folded) details.open = true;
  });
  addEventListener("afterprint", () => {
    for (const details of folded) details.open = false;
  });
})();
