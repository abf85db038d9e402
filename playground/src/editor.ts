/**
 * The editor of the request. It is in a shadow tree, where CodeMirror adds its styles in a way that the page's content
 * security policy allows.
 */

import { autocompletion, closeBrackets, closeBracketsKeymap, completionKeymap } from "@codemirror/autocomplete";
import { defaultKeymap, history, historyKeymap, invertedEffects, isolateHistory } from "@codemirror/commands";
import { json } from "@codemirror/lang-json";
import { bracketMatching, HighlightStyle, syntaxHighlighting } from "@codemirror/language";
import { type Diagnostic, linter, lintGutter, lintKeymap, setDiagnostics } from "@codemirror/lint";
import { EditorState, type Extension, StateEffect, StateField, Transaction } from "@codemirror/state";
import { drawSelection, highlightActiveLine, keymap, lineNumbers } from "@codemirror/view";
import { EditorView } from "codemirror";
import { tags } from "@lezer/highlight";
import type { Catalogue } from "./catalogue.js";
import { completed } from "./completion.js";
import type { Place } from "./places.js";

export type { Diagnostic };

/** The page's side of the editor. */
export interface Asked {
  /** finds the errors of a text; called after a pause in typing */
  readonly faults: (text: string) => Promise<readonly Diagnostic[]>;
  readonly catalogue: () => Catalogue | undefined;
  /** called after each change of the text */
  readonly changed: () => void;
  readonly run: () => void;
}

const WAIT_MS = 400;
/** The colours of the page's style sheet: CSS variables apply in the shadow tree. */
const COLOURS = HighlightStyle.define([
  { tag: tags.propertyName, color: "var(--name)" },
  { tag: tags.string, color: "var(--string)" },
  { tag: [tags.number, tags.bool, tags.null], color: "var(--number)" },
]);
const THEME = EditorView.theme({
  "&": { color: "var(--text)", backgroundColor: "var(--paper)", height: "100%", fontSize: ".8125rem" },
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

const setFromLink = StateEffect.define<boolean>();
/** Whether the text came from a link and has not been run. Undo and redo restore it together with the text. */
const fromLink = StateField.define<boolean>({
  create: () => false,
  update: (value, { effects }) => effects.findLast((effect) => effect.is(setFromLink))?.value ?? value,
  provide: (field) =>
    invertedEffects.of(({ effects, startState }) =>
      effects.some((effect) => effect.is(setFromLink)) ? [setFromLink.of(startState.field(field))] : [],
    ),
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

  /** Replace the text. This is one step of undo. */
  replace(text: string, isFromLink: boolean): void {
    const changes = { from: 0, to: this.#view.state.doc.length, insert: text };
    const annotations = isolateHistory.of("full");
    this.#view.dispatch({ changes, effects: setFromLink.of(isFromLink), annotations });
  }

  /** Whether the text, edited or not, came from a link and has not been released. */
  get isFromLink(): boolean {
    return this.#view.state.field(fromLink);
  }

  /** Treat the text as the user's own. */
  release(): void {
    this.#view.dispatch({ effects: setFromLink.of(false), annotations: Transaction.addToHistory.of(false) });
  }

  /** Mark these places, and scroll to the first. */
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

function extensionsOf({ faults, catalogue, changed, run }: Asked): Extension {
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
    fromLink,
    EditorView.updateListener.of(({ docChanged }) => {
      if (docChanged) changed();
    }),
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
    EditorView.contentAttributes.of({ "aria-label": "Request as JSON", spellcheck: "false", tabindex: "0" }),
    THEME,
  ];
}
