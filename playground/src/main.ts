/**
 * The page: draws the request in the editor, plans it while the user types, and runs it on the page's server.
 *
 * Any web page can open this one with a fragment of its choice. A request in a fragment is therefore drawn in the
 * browser alone, and sent only when the user runs it. Only the examples of the gallery run by themselves. Their requests
 * are taken from the gallery and not from the editor.
 */

import { Refusal } from "../../clients/typescript/src/errors.js";
import { type JsonObject, parse, parseUnique } from "../../clients/typescript/src/json.js";
import { type Catalogue, catalogueOf } from "./catalogue.js";
import { type Diagnostic, Editor } from "./editor.js";
import { type Example, galleryAt } from "./gallery.js";
import { laidOut } from "./layout-json.js";
import { marksOf, placesOf, told } from "./marks.js";
import { faultIn, placeOf } from "./places.js";
import { PROGRAMS } from "./programs.js";
import { storedNames, wholeRequest } from "./requests.js";
import { Server } from "./server.js";
import { Session } from "./session.js";
import { fragmentOf, LONGEST_FRAGMENT, type Mode, MODES, type Shared, sharedOf } from "./share.js";
import { type Seen, View } from "./view.js";
import { graphOf } from "./wire.js";

function element<T extends HTMLElement>(id: string): T {
  return document.getElementById(id) as T;
}

/** The page's address without a trailing slash; the script is in docs/playground below it. */
const HOME = new URL("../..", import.meta.url).href.replace(/\/$/, "");

const MODE_HELP: { readonly [mode in Mode]: string } = {
  forward: "forward: the value of every node.",
  gradients: "gradients: every value, and the gradient of the result with respect to every node.",
  check: "check: compares the gradients with finite differences.",
  differentiate: "differentiate: the gradient as a graph of its own.",
};
const PRESS_RUN = "Press Run to compute the values.";
const OWN = "Your own request: Ctrl+Space in the editor shows suggestions, Ctrl+Enter runs it.";
const CHANGED = "Out of date: the request has changed";
const FAULTY = "Out of date: the request has an error";
const NEEDS_KEY = "This server requires an API key. Enter it above, then press Run.";

class Page {
  readonly #editor: Editor;
  readonly #view: View;
  #catalogue: Catalogue | undefined;
  #gallery: readonly Example[] = [];
  /** the example whose text was put into the editor */
  #example: { readonly name: string; readonly text: string } | undefined;
  #ending = new AbortController();
  /** the error of the last run, which stays marked until the text changes */
  #rejected: { readonly text: string; readonly places: readonly Diagnostic[]; readonly seen: Seen | undefined } | undefined;
  /** text and mode of the run whose results are shown */
  #ran: string | undefined;
  /** the text that the drawing shows */
  #drawn: string | undefined;

  constructor() {
    this.#editor = new Editor(element("editor"), {
      faults: (text) => this.#looked(text),
      catalogue: () => this.#catalogue,
      changed: () => this.#changed(),
      run: () => this.#run(),
    });
    const [results, drawings, tables, part] = ["results", "drawings", "tables", "part"].map((id) => element(id));
    this.#view = new View(results as HTMLElement, drawings as HTMLElement, tables as HTMLElement, part as HTMLElement, (node) => {
      this.#toText(node);
    });
    element("run").addEventListener("click", () => this.#run());
    element("share").addEventListener("click", () => void this.#share());
    element("copy").addEventListener("click", () => void this.#copy());
    element("key").addEventListener("change", () => void this.#learn());
    element<HTMLSelectElement>("example").addEventListener("change", (event) => {
      const { value } = event.target as HTMLSelectElement;
      if (value) this.#open(value);
      else this.#clear();
    });
    for (const mode of element("modes").querySelectorAll("input")) {
      mode.addEventListener("change", () => this.#switched());
    }
    addEventListener("hashchange", () => void this.#read());
    this.#mode = "gradients";
  }

  /** Load the catalogue and the examples, then the request that the address names. */
  async start(): Promise<void> {
    void this.#learn();
    try {
      this.#gallery = await galleryAt(new URL("gallery.json", import.meta.url));
    } catch (error) {
      this.#say(told(error), true);
    }
    for (const { name, group, title } of this.#gallery) groupIn(element("example"), group).append(new Option(title, name));
    await this.#read();
  }

  get #mode(): Mode {
    return (document.querySelector<HTMLInputElement>("#modes input:checked")?.value ?? "gradients") as Mode;
  }

  set #mode(mode: Mode) {
    const known = MODES.includes(mode) ? mode : "gradients";
    element<HTMLInputElement>(`mode-${known}`).checked = true;
    element("mode-help").textContent = MODE_HELP[known];
  }

  /** The key is read from its field, and stored nowhere else. */
  get #key(): string {
    return element<HTMLInputElement>("key").value.trim();
  }

  #say(words: string, isBad = false): void {
    const status = element("status");
    status.textContent = words;
    status.classList.toggle("bad", isBad);
  }

  /** Load the catalogue for completion. If the server requires a key, this shows the field for it. */
  async #learn(): Promise<void> {
    try {
      this.#catalogue = catalogueOf(await new Server(HOME, this.#key).ops());
    } catch (error) {
      if (!this.#asksForKey(error) || this.#key) this.#say(told(error), true);
    }
  }

  /** Show the field for the key if this error asks for one. */
  #asksForKey(error: unknown): boolean {
    const isAsked = error instanceof Refusal && error.status === 401;
    if (isAsked) element("key-field").hidden = false;
    return isAsked;
  }

  /** Open the request in the fragment, or the example that it names. */
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
    if (!found) return this.#say(`There is no example called ${name}.`, true);
    const text = laidOut(found.request);
    this.#example = { name, text };
    this.#mode = found.mode;
    this.#editor.replace(text, false);
    this.#showExample();
    void this.#send(found.request);
  }

  /** Start a request of the user's own, with an empty text. */
  #clear(): void {
    this.#ending.abort();
    this.#editor.replace("", false);
    this.#say("");
  }

  /** Show the request of a link, without sending anything. */
  #receive({ mode, text }: Shared): void {
    this.#ending.abort();
    this.#rejected = undefined;
    this.#mode = mode;
    this.#editor.replace(text, true);
    let stated: JsonObject;
    try {
      stated = requestIn(text);
    } catch (error) {
      return this.#failed(error, text, undefined);
    }
    this.#drawUnsent(text, stated);
    this.#say("The request is from the link. Nothing has been sent: press Run to send it.");
  }

  #drawUnsent(text: string, stated: JsonObject): void {
    this.#show(text, { ...unsent(stated), advice: "The request is from a link. Press Run to send it to the server." });
  }

  /** Show the output for a text: it is current until the text changes. */
  #show(text: string, seen: Seen): void {
    this.#ran = undefined;
    this.#drawn = text;
    this.#view.show(seen);
    this.#showStale(this.#editor.text === text ? "" : CHANGED);
  }

  /** Grey out the output and say why, or show it as current. */
  #showStale(reason: string): void {
    element("output").classList.toggle("stale", reason !== "");
    element("all-nodes").classList.toggle("stale", reason !== "");
    element("stale").hidden = !reason;
    element("stale").textContent = reason;
  }

  #changed(): void {
    this.#showStored();
    this.#showExample();
    if (this.#drawn === undefined) return;
    const isCurrent = this.#editor.text === this.#drawn;
    this.#showStale(isCurrent ? "" : CHANGED);
    if (!isCurrent) this.#say("");
  }

  /** Name the example if the editor has its text, and otherwise remove its name, from the address as well. */
  #showExample(): void {
    const isShown = this.#example !== undefined && this.#editor.text === this.#example.text;
    element<HTMLSelectElement>("example").value = isShown && this.#example ? this.#example.name : "";
    const about = isShown ? this.#gallery.find(({ name }) => name === this.#example?.name)?.paragraph : "";
    element("about").textContent = about || OWN;
    const isNamed = location.hash.startsWith("#gallery=") && location.hash !== `#gallery=${this.#example?.name}`;
    if (location.hash.startsWith("#gallery=") && (!isShown || isNamed)) {
      history.replaceState(null, "", location.pathname + location.search);
    }
  }

  /** Run again after a change of mode, unless the user has to press Run first. */
  #switched(): void {
    this.#mode = this.#mode;
    this.#showStored();
    if (!this.#editor.text.trim()) return;
    if (!this.#editor.isFromLink && !this.#stored.length) return this.#run();
    this.#ending.abort();
    this.#say("Nothing has been sent: press Run to send the request.");
  }

  /** The names of the resident tensors that Run would store. */
  get #stored(): readonly string[] {
    const text = this.#editor.text;
    // This runs after each keystroke, and parsing is slow. Without escapes, the text contains the name as it is.
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
    notice.textContent = `Run stores these resident tensors and overwrites existing ones: ${names.join(", ")}`;
  }

  #session(): Session {
    this.#ending.abort();
    this.#ending = new AbortController();
    const several = [...(this.#catalogue?.values() ?? [])].filter((op) => op.hasSeveral).map((op) => op.name);
    return new Session(new Server(HOME, this.#key), new Set(several), this.#ending.signal);
  }

  /** Return the errors of a text. Draws it, with the shapes from `plan` unless it came from a link. */
  async #looked(text: string): Promise<readonly Diagnostic[]> {
    if (text === this.#rejected?.text) {
      if (this.#rejected.seen && this.#drawn !== text) this.#show(text, this.#rejected.seen);
      return this.#rejected.places;
    }
    if (`${this.#mode} ${text}` === this.#ran) return [];
    if (!text.trim()) {
      this.#show(text, { ...unsent({}), advice: "Write a request, or pick an example. Ctrl+Space in the editor shows suggestions." });
      return [];
    }
    let stated: JsonObject;
    try {
      stated = requestIn(text);
    } catch (error) {
      if (this.#drawn !== text) this.#showStale(FAULTY);
      this.#say(told(error));
      return [{ ...faultIn(text), severity: "error", message: told(error) }];
    }
    if (this.#editor.isFromLink) {
      this.#drawUnsent(text, stated);
      return [];
    }
    try {
      const { graph, facts } = await this.#session().looked(this.#mode, stated);
      if (this.#editor.text === text) {
        this.#show(text, { graph, facts, marks: [], parts: [], advice: PRESS_RUN });
        this.#say("The server accepts the request.");
      }
      return [];
    } catch (error) {
      if (this.#editor.text !== text || this.#ending.signal.aborted) return [];
      if (this.#asksForKey(error)) {
        this.#show(text, { ...unsent(stated), advice: NEEDS_KEY });
        return [];
      }
      this.#show(text, rejectedBy(error, stated));
      this.#say(told(error), true);
      return placesOf(error, text, stated);
    }
  }

  /** Run the text in the editor. */
  #run(): void {
    const text = this.#editor.text;
    this.#editor.release();
    if (!text.trim()) return this.#say("Write a request first, or pick an example.");
    let stated: JsonObject;
    try {
      stated = requestIn(text);
    } catch (error) {
      this.#ending.abort();
      return this.#failed(error, text, undefined);
    }
    void this.#send(stated);
  }

  /** Send a request, which the editor shows, and show the results. */
  async #send(stated: JsonObject): Promise<void> {
    const [text, mode] = [this.#editor.text, this.#mode];
    const ran = `${mode} ${text}`;
    this.#ran = ran;
    this.#rejected = undefined;
    const session = this.#session();
    const { signal } = this.#ending;
    this.#say("Running …");
    try {
      const outcome = await session.run(mode, stated);
      if (signal.aborted) return;
      this.#editor.mark([]);
      this.#show(text, { ...outcome, marks: [], advice: outcome.said });
      this.#ran = ran;
      this.#say(outcome.said);
    } catch (error) {
      if (signal.aborted) return;
      this.#failed(error, text, stated);
    }
  }

  #failed(error: unknown, text: string, stated: JsonObject | undefined): void {
    const isKeyless = this.#asksForKey(error) && !this.#key;
    this.#say(isKeyless ? NEEDS_KEY : told(error), !isKeyless);
    if (stated === undefined) {
      const places: readonly Diagnostic[] = [{ ...faultIn(text), severity: "error", message: told(error) }];
      this.#rejected = { text, places, seen: undefined };
      this.#editor.mark(places);
      if (this.#drawn !== undefined && this.#drawn !== text) this.#showStale(FAULTY);
      return;
    }
    const places = isKeyless ? [] : placesOf(error, text, stated);
    const seen = isKeyless ? { ...unsent(stated), advice: NEEDS_KEY } : rejectedBy(error, stated);
    this.#rejected = { text, places, seen };
    this.#editor.mark(places);
    this.#show(text, seen);
  }

  #toText(node: number): void {
    this.#editor.goTo(placeOf(this.#editor.text, `/graph/nodes/${node}`));
  }

  async #share(): Promise<void> {
    const fragment = await fragmentOf({ mode: this.#mode, text: this.#editor.text });
    if (!fragment) {
      return this.#say(`The request is too long for a link: the limit is ${LONGEST_FRAGMENT / 1024} KB.`, true);
    }
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

  /** Show a text, and copy it if the browser allows that. */
  async #handOut(text: string, what: string): Promise<void> {
    const handed = element<HTMLTextAreaElement>("handed");
    handed.value = text;
    element("handed-out").hidden = false;
    handed.select();
    try {
      await navigator.clipboard.writeText(text);
      this.#say(`The ${what} is copied.`);
    } catch {
      this.#say(`The ${what} is below. Copy it from there.`);
    }
  }
}

/** The group of examples with this label in the list, added if it is new. */
function groupIn(list: HTMLElement, label: string): HTMLElement {
  const found = [...list.querySelectorAll("optgroup")].find((group) => group.label === label);
  if (found) return found;
  const group = Object.assign(document.createElement("optgroup"), { label });
  list.append(group);
  return group;
}

/** The graph of a request that has not been sent. */
function unsent(stated: JsonObject): Seen {
  return { graph: graphOf(stated["graph"]), facts: new Map(), marks: [], parts: [], advice: "" };
}

/** The graph of a request that the server rejects, with the error's marks. */
function rejectedBy(error: unknown, stated: JsonObject): Seen {
  const marks = marksOf(error);
  const advice = marks.length ? "No results: fix the error in the request, then press Run." : "No results.";
  return { ...unsent(stated), marks, advice };
}

/** The request in a text. Throws SyntaxError if there is none. */
function requestIn(text: string): JsonObject {
  const value = parse(text);
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    throw new SyntaxError("A request is a JSON object with a graph and its feeds.");
  }
  try {
    parseUnique(text);
  } catch {
    throw new SyntaxError("An object has the same key twice.");
  }
  return value as JsonObject;
}

for (const language of Object.keys(PROGRAMS)) element("language").append(new Option(language));
void new Page().start();
