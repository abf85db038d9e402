/**
 * The editor of the request. It lies in a shadow tree, where CodeMirror states its styles in a way that the page's
 * content security policy admits.
 */

import { autocompletion, closeBrackets, closeBracketsKeymap, completionKeymap } from "@codemirror/autocomplete";
import { defaultKeymap, history, historyKeymap } from "@codemirror/commands";
import { json } from "@codemirror/lang-json";
import { bracketMatching, HighlightStyle, syntaxHighlighting } from "@codemirror/language";
import { type Diagnostic, linter, lintGutter, lintKeymap, setDiagnostics } from "@codemirror/lint";
import { EditorState, type Extension } from "@codemirror/state";
import { drawSelection, highlightActiveLine, keymap, lineNumbers } from "@codemirror/view";
import { EditorView } from "codemirror";
import { tags } from "@lezer/highlight";
import type { Catalogue } from "./catalogue.js";
import { completed } from "./completion.js";
import type { Place } from "./places.js";

export type { Diagnostic };

/** What the editor asks of the page. */
export interface Asked {
  /** what is wrong with a text, which is asked when nothing was typed for a while */
  readonly faults: (text: string) => Promise<readonly Diagnostic[]>;
  readonly catalogue: () => Catalogue | undefined;
  readonly run: () => void;
}

const WAIT_MS = 400;
/** Colours are those of the page's style sheet: variables reach into the shadow tree. */
const COLOURS = HighlightStyle.define([
  { tag: tags.propertyName, color: "var(--name)" },
  { tag: tags.string, color: "var(--string)" },
  { tag: [tags.number, tags.bool, tags.null], color: "var(--number)" },
]);
const THEME = EditorView.theme({
  "&": { color: "var(--text)", backgroundColor: "var(--paper)", height: "100%", fontSize: ".85rem" },
  "&.cm-focused": { outline: "2px solid var(--accent)" },
  ".cm-content": { caretColor: "var(--text)" },
  ".cm-scroller": { fontFamily: "ui-monospace, Menlo, Consolas, monospace", overflow: "auto" },
  ".cm-cursor": { borderLeftColor: "var(--text)" },
  ".cm-gutters": { color: "var(--quiet)", backgroundColor: "var(--paper)", border: "none" },
  ".cm-activeLine": { backgroundColor: "var(--line)" },
  "&.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground, .cm-selectionBackground": {
    backgroundColor: "var(--selection)",
  },
  ".cm-tooltip": { color: "var(--text)", backgroundColor: "var(--paper)", border: "1px solid var(--quiet)" },
  ".cm-tooltip-autocomplete > ul > li[aria-selected]": { color: "var(--paper)", backgroundColor: "var(--accent)" },
  ".cm-diagnostic": { whiteSpace: "pre-wrap", maxWidth: "30rem" },
  ".cm-matchingBracket, &.cm-focused .cm-matchingBracket": { backgroundColor: "var(--selection)" },
});

export class Editor {
  readonly #view: EditorView;

  constructor(host: HTMLElement, asked: Asked) {
    const root = host.attachShadow({ mode: "open" });
    this.#view = new EditorView({ root, parent: root, extensions: extensionsOf(asked) });
  }

  get text(): string {
    return this.#view.state.doc.toString();
  }

  /** Another text in place of this one. It can be undone. */
  set text(text: string) {
    this.#view.dispatch({ changes: { from: 0, to: this.#view.state.doc.length, insert: text } });
  }

  /** Have these places marked, and the first of them shown. */
  mark(faults: readonly Diagnostic[]): void {
    this.#view.dispatch(setDiagnostics(this.#view.state, faults));
    const [first] = faults;
    if (first) this.#view.dispatch({ effects: EditorView.scrollIntoView(first.from, { y: "center" }) });
  }

  /** Go to a place, and select it. */
  goTo({ from, to }: Place): void {
    this.#view.dispatch({ selection: { anchor: from, head: to }, scrollIntoView: true });
    this.#view.focus();
  }
}

function extensionsOf({ faults, catalogue, run }: Asked): Extension {
  const started = {
    key: "Mod-Enter",
    run: () => {
      run();
      return true;
    },
  };
  return [
    lineNumbers(),
    history(),
    drawSelection(),
    highlightActiveLine(),
    bracketMatching(),
    closeBrackets(),
    autocompletion({ interactionDelay: 0, override: [(context) => completed(context, catalogue())] }),
    json(),
    syntaxHighlighting(COLOURS),
    lintGutter(),
    linter((view) => faults(view.state.doc.toString()), { delay: WAIT_MS }),
    keymap.of([started, ...closeBracketsKeymap, ...defaultKeymap, ...historyKeymap, ...completionKeymap, ...lintKeymap]),
    EditorState.tabSize.of(2),
    EditorView.lineWrapping,
    EditorView.contentAttributes.of({ "aria-label": "request as JSON", spellcheck: "false" }),
    THEME,
  ];
}
