/** The line of a program that calls into this package, by the stack that engines write into errors. */

/** Frames of this package above the caller’s, where files do not tell: here, `append`, and the method of the op. */
const DEPTH = 3;
/** `at f (file:///train.js:12:3)` of V8, `f@https://there/train.js:12:3` of others. */
const FRAME = /^(?:\s*at (?:.*\()?|.*@)(.+?):(\d+):\d+\)?$/;

/** As `train.js:12`; empty where the engine does not say. */
export function callersLine(stack = new Error().stack ?? ""): string {
  const frames = stack.split("\n").flatMap((line) => FRAME.exec(line)?.slice(1) ?? []);
  const places = frames.filter((_, i) => i % 2 === 0);
  const lines = frames.filter((_, i) => i % 2 === 1);
  // The first frame is this function: where it lies, the package lies; a bundle has all in one file.
  const own = folderOf(places[0] ?? "");
  const found = places.findIndex((place) => ![own, `${own}generated/`].includes(folderOf(place)));
  const caller = found < 0 ? DEPTH : found;
  const place = places[caller];
  return place === undefined ? "" : `${place.slice(folderOf(place).length)}:${lines[caller]}`;
}

function folderOf(place: string): string {
  return place.slice(0, Math.max(place.lastIndexOf("/"), place.lastIndexOf("\\")) + 1);
}
