/* Copy buttons of all code, and tabs of blocks that follow one another in several languages. Without it, all is there. */

const LANGUAGES = { sh: "curl", python: "Python", ts: "TypeScript", go: "Go", rust: "Rust", java: "Java", cpp: "C++" };
const CHOSEN = "gradserve-language";

function addButton(block) {
  const button = document.createElement("button");
  button.type = "button";
  button.className = "copy-code";
  button.textContent = "Copy";
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(block.querySelector("pre").textContent);
      button.textContent = "Copied";
    } catch {
      getSelection().selectAllChildren(block.querySelector("pre"));
      button.textContent = "Selected";
    }
  });
  button.addEventListener("blur", () => (button.textContent = "Copy"));
  block.append(button);
}

function languageOf(element) {
  const [, name] = /(?:^| )highlight-(\w+)/.exec(element?.className ?? "") ?? [];
  return name in LANGUAGES ? name : undefined;
}

/** Runs of blocks one behind the other, each in another language. */
function runs() {
  const found = [];
  const seen = new Set();
  for (const first of document.querySelectorAll("div[class*='highlight-']")) {
    const run = [];
    for (let next = first; languageOf(next) && !seen.has(next); next = next.nextElementSibling) {
      if (run.some((each) => languageOf(each) === languageOf(next))) break;
      run.push(next);
    }
    for (const each of run) seen.add(each);
    if (run.length > 1) found.push(run);
  }
  return found;
}

function addTabs(run, number) {
  const group = document.createElement("div");
  const list = document.createElement("div");
  group.className = "code-tabs";
  list.setAttribute("role", "tablist");
  list.setAttribute("aria-label", "language");
  run[0].before(group);
  group.append(list);
  for (const block of run) {
    const [tab, panel] = [document.createElement("button"), document.createElement("div")];
    const id = `code-${number}-${languageOf(block)}`;
    Object.assign(tab, { type: "button", textContent: LANGUAGES[languageOf(block)], id: `${id}-tab` });
    tab.setAttribute("role", "tab");
    tab.setAttribute("aria-controls", id);
    tab.dataset.language = languageOf(block);
    panel.id = id;
    panel.setAttribute("role", "tabpanel");
    panel.setAttribute("aria-labelledby", tab.id);
    panel.append(block);
    list.append(tab);
    group.append(panel);
    tab.addEventListener("click", () => choose(tab.dataset.language));
  }
  list.addEventListener("keydown", (event) => {
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    const tabs = [...list.children];
    const next = tabs[tabs.indexOf(document.activeElement) + step];
    if (next) {
      choose(next.dataset.language);
      next.focus();
    }
  });
  return group;
}

/** Show one language, in all groups that have it. */
function choose(language) {
  for (const group of document.querySelectorAll(".code-tabs")) {
    const tabs = [...group.querySelectorAll("[role='tab']")];
    const chosen = tabs.find((tab) => tab.dataset.language === language);
    if (!chosen) continue;
    for (const tab of tabs) {
      tab.setAttribute("aria-selected", String(tab === chosen));
      tab.tabIndex = tab === chosen ? 0 : -1;
      document.getElementById(tab.getAttribute("aria-controls")).hidden = tab !== chosen;
    }
  }
  try {
    localStorage.setItem(CHOSEN, language);
  } catch {
    // A browser that keeps nothing shows the first language next time.
  }
}

function chosenBefore() {
  try {
    return localStorage.getItem(CHOSEN);
  } catch {
    return null;
  }
}

addEventListener("DOMContentLoaded", () => {
  for (const block of document.querySelectorAll("div.highlight")) addButton(block);
  for (const group of runs().map(addTabs)) choose(group.querySelector("[role='tab']").dataset.language);
  const before = chosenBefore();
  if (before) choose(before);
});
