/** Links whose fragment holds a request: nothing of it is sent to a server, or written into a log. */

export const MODES = ["forward", "gradients", "check", "differentiate"] as const;
export type Mode = (typeof MODES)[number];

/** What a link holds, and what the page shows. */
export interface Shared {
  readonly mode: Mode;
  readonly text: string;
}

/** Characters of a fragment, at most. */
export const LONGEST_FRAGMENT = 32 * 1024;
/** Characters of a request that comes out of one, at most. */
const LONGEST_TEXT = 4 * 2 ** 20;

/** The fragment of a request, its `#` left out; undefined where it would be too long. */
export async function fragmentOf({ mode, text }: Shared): Promise<string | undefined> {
  const packed = new Blob([text]).stream().pipeThrough(new CompressionStream("deflate-raw"));
  const bytes = new Uint8Array(await new Response(packed).arrayBuffer());
  const letters = Array.from(bytes, (byte) => String.fromCharCode(byte)).join("");
  const fragment = `${mode}=${btoa(letters).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "")}`;
  return fragment.length <= LONGEST_FRAGMENT ? fragment : undefined;
}

/** The request that a fragment holds. Throws an Error for one that holds none. */
export async function sharedOf(fragment: string): Promise<Shared> {
  const [mode, packed] = fragment.split("=", 2);
  if (!isMode(mode) || !packed || fragment.length > LONGEST_FRAGMENT) throw new Error("the link holds no request");
  try {
    return { mode, text: await unpacked(packed) };
  } catch {
    throw new Error("the request in the link is broken, or was cut off");
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
