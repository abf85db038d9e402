/**
 * Draws graphs with the page's drawing module: `node playground/draw.mjs FOLDER`; FOLDER contains the packages.
 *
 * Reads a list of {title, graph, id} as JSON, and writes a list of SVG texts.
 */

import { mkdtemp, rm } from "node:fs/promises";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

const packages = resolve(process.argv[2] ?? "");
const { build } = createRequire(join(packages, "package.json"))("esbuild");

/** The drawing module, built for Node. */
async function drawingModule() {
  const folder = await mkdtemp(join(tmpdir(), "gradserve-drawing-"));
  const outfile = join(folder, "picture.mjs");
  const stated = {
    contents: 'export { picture } from "./drawing.ts"; export { graphOf } from "./wire.ts";',
    resolveDir: join(dirname(fileURLToPath(import.meta.url)), "src"),
  };
  try {
    await build({
      stdin: stated,
      nodePaths: [join(packages, "node_modules")],
      outfile,
      bundle: true,
      format: "esm",
      platform: "node",
    });
    return await import(pathToFileURL(outfile));
  } finally {
    await rm(folder, { recursive: true });
  }
}

const { picture, graphOf } = await drawingModule();
const asked = JSON.parse(await new Response(process.stdin).text());
process.stdout.write(JSON.stringify(asked.map(({ title, graph, id }) => picture(graphOf(graph), title, id))));
