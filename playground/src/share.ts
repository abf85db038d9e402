/** Links with a request in the fragment, which browsers do not send to a server. */

export const MODES = ["forward", "gradients", "check", "differentiate"] as const;
export type Mode = (typeof MODES)[number];

/** The content of a link. */
export interface Shared {
  readonly mode: Mode;
  readonly text: string;
}

/** The most characters of a fragment. */
export const LONGEST_FRAGMENT = 32 * 1024;
/** The most characters of the request in a fragment. */
const LONGEST_TEXT = 4 * 2 ** 20;

/** The fragment of a request without its `#`; undefined if it would be too long. */
export async function fragmentOf({ mode, text }: Shared): Promise<string | undefined> {
  const packed = new Blob([text]).stream().pipeThrough(new CompressionStream("deflate-raw"));
  const bytes = new Uint8Array(await new Response(packed).arrayBuffer());
  const letters = Array.from(bytes, (byte) => String.fromCharCode(byte)).join("");
  const fragment = `${mode}=${btoa(letters).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "")}`;
  return fragment.length <= LONGEST_FRAGMENT ? fragment : undefined;
}

/** The request in a fragment. Throws an Error if there is none. */
export async function sharedOf(fragment: string): Promise<Shared> {
  const [mode, packed] = fragment.split("=", 2);
  if (!isMode(mode) || !packed || fragment.length > LONGEST_FRAGMENT) throw new Error("The link contains no request.");
  try {
    return { mode, text: await unpacked(packed) };
  } catch {
    throw new Error("The request in the link is damaged or cut off.");
  }
}

function isMode(word: string | undefined): word is Mode {
  return MODES.includes(word as Mode);
}

async function unpacked(packed: string): Promise<string> {
  const letters = atob(packed.replaceAll("-", "+").replaceAll("_", "/"));
  const bytes = Uint8Array.from(letters, (letter) => letter.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
  const reader = stream.pipeThrough(new TextDecoderStream("utf-8", { fatal: true })).getReader();
  let text = "";
  for (let next = await reader.read(); !next.done; next = await reader.read()) {
    text += next.value;
    if (text.length > LONGEST_TEXT) throw new Error("too long");
  }
  return text;
}
