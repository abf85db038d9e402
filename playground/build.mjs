/**
 * Writes service/web/pages/generated/playground, the page as it is served; with --check, says whether it is current.
 *
 * Run as `node playground/build.mjs FOLDER [--check]`, where FOLDER has the packages of package.json. What comes out
 * depends on them and on the sources alone.
 */

import { createHash } from "node:crypto";
import { mkdir, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { dirname, join, relative, resolve } from "node:path";
import { fileURLToPath } from "node:url";

const HERE = dirname(fileURLToPath(import.meta.url));
const ROOT = dirname(HERE);
const TARGET = join(ROOT, "service", "web", "pages", "generated", "playground");
const GALLERY = join(ROOT, "examples", "gallery");
const [packages, check] = [resolve(process.argv[2] ?? ""), process.argv.includes("--check")];
const { build } = createRequire(join(packages, "package.json"))("esbuild");

/** The script and the style sheet, and the packages that are in them. */
async function bundled() {
  const done = await build({
    absWorkingDir: ROOT,
    entryPoints: { app: "playground/src/main.ts", page: "playground/src/page.css" },
    nodePaths: [join(packages, "node_modules")],
    outdir: "service/web/pages/generated/playground",
    bundle: true,
    minify: true,
    charset: "utf8",
    legalComments: "none",
    format: "esm",
    target: "es2022",
    metafile: true,
    write: false,
  });
  const files = Object.fromEntries(done.outputFiles.map(({ path, contents }) => [relative(TARGET, path), contents]));
  return { files, used: packagesIn(Object.keys(done.metafile.inputs)) };
}

function packagesIn(inputs) {
  const found = inputs.map((path) => /.*node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(path)?.[1]);
  return [...new Set(found.filter(Boolean))].sort();
}

/** Names, versions and licences of the packages: who holds the rights of each, and the terms that several share once. */
async function licences(used) {
  const terms = new Map();
  for (const name of used) {
    const folder = join(packages, "node_modules", name);
    const { version, license } = JSON.parse(await readFile(join(folder, "package.json"), "utf8"));
    const file = (await readdir(folder)).find((each) => /^licen[cs]e/i.test(each));
    if (!file) throw new Error(`${name} comes without its licence`);
    const text = (await readFile(join(folder, file), "utf8")).trim();
    const start = Math.max(0, text.search(/^Permission /m));
    const shared = `${license}: ${text.slice(start).replace(/\s+/g, " ")}`;
    const held = text.slice(0, start).replace(/^.*Licen[cs]e.*$/gim, "").trim();
    const { holders } = terms.get(shared) ?? { holders: new Map() };
    holders.set(held, [...(holders.get(held) ?? []), `${name} ${version}`]);
    terms.set(shared, { license, text: text.slice(start), holders });
  }
  const parts = [...terms.values()].map(({ license, text, holders }) => {
    const named = [...holders].map(([held, names]) => `${names.join(", ")}: ${license}\n${held}`.trim());
    return `${named.join("\n\n")}\n\n${text}\n`;
  });
  return `The script of this page has these packages in it.\n\n${parts.join(`\n${"-".repeat(80)}\n\n`)}`;
}

/** What the page has of the gallery's files: not what their tests and pages alone need. */
async function gallery() {
  const names = (await readdir(GALLERY)).filter((name) => name.endsWith(".json")).sort();
  const all = await Promise.all(names.map(async (name) => {
    // As text: numbers keep their digits. The request is the last member, on a line of its own.
    const text = await readFile(join(GALLERY, name), "utf8");
    const { title, paragraph, mode } = JSON.parse(text);
    const [request] = /^ "request": .*$/m.exec(text) ?? [];
    if (!request) throw new Error(`${name} has no request on a line of its own`);
    const about = JSON.stringify({ name: name.replace(/\.json$/, ""), title, paragraph, mode });
    return `${about.slice(0, -1)},${request.trim().replace(/,$/, "")}}`;
  }));
  return `[${all.join(",\n")}]\n`;
}

/** Each file of the page by its name. Addresses have a hash of what is behind them, so that none is out of date. */
async function made() {
  const { files, used } = await bundled();
  const named = (name) => `${name}?${createHash("sha256").update(files[name]).digest("hex").slice(0, 12)}`;
  const html = (await readFile(join(HERE, "src", "index.html"), "utf8"))
    .replaceAll("{css}", named("page.css"))
    .replaceAll("{js}", named("app.js"));
  return { ...files, "index.html": html, "gallery.json": await gallery(), "licences.txt": await licences(used) };
}

async function outOfDate(files) {
  const there = await readdir(TARGET).catch(() => []);
  const stale = [...new Set([...there, ...Object.keys(files)])];
  const differs = await Promise.all(stale.map(async (name) => {
    const [written, wanted] = [await readFile(join(TARGET, name)).catch(() => undefined), files[name]];
    return wanted === undefined || !written?.equals(Buffer.from(wanted));
  }));
  return stale.filter((_, index) => differs[index]);
}

const files = await made();
if (check) {
  const stale = await outOfDate(files);
  if (stale.length) {
    console.error(`not what \`make playground\` writes: ${stale.join(", ")}, in ${relative(ROOT, TARGET)}`);
    process.exitCode = 1;
  }
} else {
  await rm(TARGET, { recursive: true, force: true });
  await mkdir(TARGET, { recursive: true });
  await Promise.all(Object.entries(files).map(([name, content]) => writeFile(join(TARGET, name), content)));
}
for (const [name, content] of Object.entries(files)) console.log(`${name}: ${Buffer.from(content).length} bytes`);
