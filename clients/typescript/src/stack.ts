/** Finds the line of the program that calls into this package, from the stack that engines attach to errors. */

/**
 * The number of this package's frames above the caller's, if file names cannot tell: this function, `append`, and the
 * method of the op.
 */
const DEPTH = 3;
/** A frame: `at f (file:///train.js:12:3)` in V8, `f@https://there/train.js:12:3` in other engines. */
const FRAME = /^(?:\s*at (?:.*\()?|.*@)(.+?):(\d+):\d+\)?$/;

/** Returns the line, such as `train.js:12`, or an empty string if the engine does not report it. */
export function callersLine(stack = new Error().stack ?? ""): string {
  const frames = stack.split("\n").flatMap((line) => FRAME.exec(line)?.slice(1) ?? []);
  const places = frames.filter((_, i) => i % 2 === 0);
  const lines = frames.filter((_, i) => i % 2 === 1);
  // The first frame is this function, so its folder is the package's folder. In a bundle, everything is in one file.
  const own = folderOf(places[0] ?? "");
  const found = places.findIndex((place) => ![own, `${own}generated/`].includes(folderOf(place)));
  const caller = found < 0 ? DEPTH : found;
  const place = places[caller];
  return place === undefined ? "" : `${place.slice(folderOf(place).length)}:${lines[caller]}`;
}

function folderOf(place: string): string {
  return place.slice(0, Math.max(place.lastIndexOf("/"), place.lastIndexOf("\\")) + 1);
}
