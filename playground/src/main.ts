/**
 * The page: draws the request in the editor, plans it while the user types, and runs it on the server of the page.
 *
 * Any web page can open this one with a fragment of its choice. A request in a fragment is therefore drawn in the
 * browser alone, and sent once the user runs it. What runs by itself is an example of the gallery, whose request is
 * taken from the gallery and not from the editor.
 */

import { type JsonObject, parse, parseUnique } from "../../clients/typescript/src/json.js";
import { type Catalogue, catalogueOf } from "./catalogue.js";
import { type Diagnostic, Editor } from "./editor.js";
import { type Example, galleryAt } from "./gallery.js";
import { laidOut } from "./layout-json.js";
import { marksOf, placesOf, told } from "./marks.js";
import { placeOf } from "./places.js";
import { PROGRAMS } from "./programs.js";
import { storedNames, wholeRequest } from "./requests.js";
import { Server } from "./server.js";
import { Session } from "./session.js";
import { fragmentOf, LONGEST_FRAGMENT, type Mode, MODES, type Shared, sharedOf } from "./share.js";
import { View } from "./view.js";
import { graphOf } from "./wire.js";

function element<T extends HTMLElement>(id: string): T {
  return document.getElementById(id) as T;
}

/** Where the page is, without a slash at its end: the script lies in docs/playground beneath. */
const HOME = new URL("../..", import.meta.url).href.replace(/\/$/, "");

class Page {
  readonly #editor: Editor;
  readonly #view: View;
  #catalogue: Catalogue | undefined;
  #gallery: readonly Example[] = [];
  #ending = new AbortController();
  /** what the last run was refused for, which stays marked until something is typed */
  #refused: { readonly text: string; readonly places: readonly Diagnostic[] } | undefined;
  /** the text and mode that are shown with all that a run says */
  #ran: string | undefined;

  constructor() {
    this.#editor = new Editor(element("editor"), {
      faults: (text) => this.#looked(text),
      catalogue: () => this.#catalogue,
      changed: () => this.#showStored(),
      run: () => this.#run(),
    });
    this.#view = new View(element("drawings"), element("tables"), element("part"), (node) => this.#toText(node));
    element("run").addEventListener("click", () => this.#run());
    element("share").addEventListener("click", () => void this.#share());
    element("copy").addEventListener("click", () => void this.#copy());
    element("key").addEventListener("change", () => void this.#learn());
    element<HTMLSelectElement>("example").addEventListener("change", (event) => {
      this.#open((event.target as HTMLSelectElement).value);
    });
    for (const mode of element("modes").querySelectorAll("input")) {
      mode.addEventListener("change", () => this.#switched());
    }
    addEventListener("hashchange", () => void this.#read());
  }

  /** Load what there is beside the page, then what its address says. */
  async start(): Promise<void> {
    void this.#learn();
    try {
      this.#gallery = await galleryAt(new URL("gallery.json", import.meta.url));
    } catch (error) {
      this.#say(told(error));
    }
    const options = this.#gallery.map(({ name, title }) => new Option(title, name));
    element<HTMLSelectElement>("example").append(...options);
    await this.#read();
  }

  get #mode(): Mode {
    return (document.querySelector<HTMLInputElement>("#modes input:checked")?.value ?? "gradients") as Mode;
  }

  set #mode(mode: Mode) {
    element<HTMLInputElement>(`mode-${MODES.includes(mode) ? mode : "gradients"}`).checked = true;
  }

  /** The key is read where it is typed, and kept nowhere else. */
  get #key(): string {
    return element<HTMLInputElement>("key").value.trim();
  }

  #say(words: string, isBad = false): void {
    const status = element("status");
    status.textContent = words;
    status.classList.toggle("bad", isBad);
  }

  /** Ask for the catalogue, for completion; without a key that may be refused, and then there is none. */
  async #learn(): Promise<void> {
    try {
      this.#catalogue = catalogueOf(await new Server(HOME, this.#key).ops());
    } catch (error) {
      this.#say(told(error), true);
    }
  }

  /** What the fragment of the address says: a request, or the name of an example. */
  async #read(): Promise<void> {
    const fragment = location.hash.slice(1);
    const [, name] = /^gallery=(.+)$/.exec(fragment) ?? [];
    try {
      if (name !== undefined || !fragment) return this.#open(name ?? this.#gallery[0]?.name ?? "");
      this.#receive(await sharedOf(fragment));
    } catch (error) {
      this.#say(told(error), true);
    }
  }

  #open(name: string): void {
    const found = this.#gallery.find((each) => each.name === name);
    if (!found) return this.#say(`there is no example called ${name}`, true);
    element<HTMLSelectElement>("example").value = name;
    element("about").textContent = found.paragraph;
    this.#mode = found.mode;
    this.#editor.replace(laidOut(found.request), false);
    void this.#send(found.request);
  }

  /** Show the request of a link, without sending anything. */
  #receive({ mode, text }: Shared): void {
    this.#ending.abort();
    this.#refused = undefined;
    this.#mode = mode;
    this.#editor.replace(text, true);
    let stated: JsonObject;
    try {
      stated = requestIn(text);
    } catch (error) {
      return this.#failed(error, text, undefined);
    }
    this.#drawUnsent(stated);
    this.#say("the request from the link has not been sent: press Run to send it");
  }

  #drawUnsent(stated: JsonObject): void {
    this.#ran = undefined;
    this.#view.show({ graph: graphOf(stated["graph"]), facts: new Map(), marks: [] });
  }

  /** Run again after a change of mode, unless the user has to press Run first. */
  #switched(): void {
    this.#showStored();
    if (!this.#editor.isFromLink && !this.#stored.length) return this.#run();
    this.#ending.abort();
    this.#say("the request has not been sent: press Run to send it");
  }

  /** The names of the resident tensors that Run would write. */
  get #stored(): readonly string[] {
    const text = this.#editor.text;
    // This is asked at each keystroke, and parsing is slow: without escapes, the name stands in the text as it is.
    if (!/"store"|\\/.test(text)) return [];
    try {
      return storedNames(this.#mode, requestIn(text));
    } catch {
      return [];
    }
  }

  #showStored(): void {
    const [names, notice] = [this.#stored, element("stores")];
    notice.hidden = !names.length;
    notice.textContent = `Run writes these resident tensors and overwrites what they hold: ${names.join(", ")}`;
  }

  #session(): Session {
    this.#ending.abort();
    this.#ending = new AbortController();
    const several = [...(this.#catalogue?.values() ?? [])].filter((op) => op.hasSeveral).map((op) => op.name);
    return new Session(new Server(HOME, this.#key), new Set(several), this.#ending.signal);
  }

  /** The faults of a text that was typed. Draws it, with the shapes from `plan` unless it came from a link. */
  async #looked(text: string): Promise<readonly Diagnostic[]> {
    if (text === this.#refused?.text) return this.#refused.places;
    if (`${this.#mode} ${text}` === this.#ran) return [];
    let stated: JsonObject;
    try {
      stated = requestIn(text);
    } catch (error) {
      return [{ ...faultIn(text), severity: "error", message: told(error) }];
    }
    if (this.#editor.isFromLink) {
      this.#drawUnsent(stated);
      return [];
    }
    try {
      const { graph, facts } = await this.#session().looked(this.#mode, stated);
      if (this.#editor.text === text) this.#view.show({ graph, facts, marks: [] });
      return [];
    } catch (error) {
      if (this.#editor.text !== text || this.#ending.signal.aborted) return [];
      this.#view.show({ graph: graphOf(stated["graph"]), facts: new Map(), marks: marksOf(error) });
      return placesOf(error, text, stated);
    }
  }

  /** Run the text in the editor. */
  #run(): void {
    const text = this.#editor.text;
    this.#editor.release();
    let stated: JsonObject;
    try {
      stated = requestIn(text);
    } catch (error) {
      this.#ending.abort();
      return this.#failed(error, text, undefined);
    }
    void this.#send(stated);
  }

  /** Send a request, which the editor shows, and show its answer. */
  async #send(stated: JsonObject): Promise<void> {
    const [text, mode] = [this.#editor.text, this.#mode];
    this.#ran = `${mode} ${text}`;
    this.#refused = undefined;
    const session = this.#session();
    const { signal } = this.#ending;
    this.#say("running …");
    try {
      const { graph, facts, said } = await session.run(mode, stated);
      if (signal.aborted) return;
      this.#editor.mark([]);
      this.#view.show({ graph, facts, marks: [] });
      this.#say(said);
    } catch (error) {
      if (signal.aborted) return;
      this.#failed(error, text, stated);
    }
  }

  #failed(error: unknown, text: string, stated: JsonObject | undefined): void {
    this.#say(told(error), true);
    const isWritten = stated !== undefined;
    const places: readonly Diagnostic[] = isWritten
      ? placesOf(error, text, stated)
      : [{ ...faultIn(text), severity: "error", message: told(error) }];
    this.#refused = { text, places };
    this.#editor.mark(places);
    if (isWritten) this.#view.show({ graph: graphOf(stated["graph"]), facts: new Map(), marks: marksOf(error) });
  }

  #toText(node: number): void {
    this.#editor.goTo(placeOf(this.#editor.text, `/graph/nodes/${node}`));
  }

  async #share(): Promise<void> {
    const fragment = await fragmentOf({ mode: this.#mode, text: this.#editor.text });
    if (!fragment) return this.#say(`the request is too long for a link, which holds ${LONGEST_FRAGMENT / 1024} KB`, true);
    history.replaceState(null, "", `#${fragment}`);
    await this.#handOut(location.href, "link");
  }

  async #copy(): Promise<void> {
    const language = element<HTMLSelectElement>("language").value;
    try {
      const body = laidOut(wholeRequest(this.#mode, requestIn(this.#editor.text)));
      const sent = { url: HOME, call: this.#mode, body, hasKey: this.#key !== "" };
      await this.#handOut(PROGRAMS[language]?.(sent) ?? "", `${language} program`);
    } catch (error) {
      this.#say(told(error), true);
    }
  }

  /** Show a text, and have it copied where the browser lets a page do so. */
  async #handOut(text: string, what: string): Promise<void> {
    const handed = element<HTMLTextAreaElement>("handed");
    handed.value = text;
    element("handed-out").hidden = false;
    handed.select();
    try {
      await navigator.clipboard.writeText(text);
      this.#say(`the ${what} is copied`);
    } catch {
      this.#say(`the ${what} is below, to be copied`);
    }
  }
}

/** The request in a text. Throws SyntaxError where it is none. */
function requestIn(text: string): JsonObject {
  const value = parse(text);
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    throw new SyntaxError("a request is an object, with a graph and its feeds");
  }
  try {
    parseUnique(text);
  } catch {
    throw new SyntaxError("an object has the same name twice");
  }
  return value as JsonObject;
}

/** Where a text stops being JSON, as far as the browser says so. */
function faultIn(text: string): { readonly from: number; readonly to: number } {
  try {
    JSON.parse(text);
  } catch (error) {
    const [, at] = /position (\d+)/.exec(String(error)) ?? [];
    const from = Math.min(at === undefined ? text.length : Number(at), text.length);
    return { from, to: Math.min(from + 1, text.length) };
  }
  return { from: 0, to: Math.min(1, text.length) };
}

for (const language of Object.keys(PROGRAMS)) element("language").append(new Option(language));
void new Page().start();
