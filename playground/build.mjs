/**
 * Builds service/web/pages/generated/playground, the files of the page; with --check, reports whether they are current.
 *
 * Run it as `node playground/build.mjs FOLDER [--check]`; FOLDER contains the packages of package.json. The output
 * depends only on them and on the sources.
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

/** The script and the style sheet, and the names of the bundled packages. */
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

/** Names, versions, copyright and licences of the packages; terms that several share are listed once. */
async function licences(used) {
  const terms = new Map();
  for (const name of used) {
    const folder = join(packages, "node_modules", name);
    const { version, license } = JSON.parse(await readFile(join(folder, "package.json"), "utf8"));
    const file = (await readdir(folder)).find((each) => /^licen[cs]e/i.test(each));
    if (!file) throw new Error(`${name} has no licence file`);
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
  return `The script of this page contains these packages.\n\n${parts.join(`\n${"-".repeat(80)}\n\n`)}`;
}

/** The first examples of the list; the page opens with the first, which is the example of the README. */
const START = ["least_squares", "projectile", "gradient_descent"];
/** Tags that are groups of the list, in its order. An imported example is in the first of them. */
const GROUPS = ["imported", "machine learning", "statistics", "optimisation", "physics", "finance", "graphics"];
const LABELS = { imported: "Imported from PyTorch, JAX and ONNX" };

/** The examples of the gallery without the members that only tests and the documentation need: in groups, smallest first. */
async function gallery() {
  const names = (await readdir(GALLERY)).filter((name) => name.endsWith(".json"));
  const all = await Promise.all(names.map(async (file) => {
    // As text, so that numbers keep their digits. The request is on a line of its own.
    const text = await readFile(join(GALLERY, file), "utf8");
    const { title, paragraph, mode, tags, request: { graph } } = JSON.parse(text);
    const [request] = /^ "request": .*$/m.exec(text) ?? [];
    if (!request) throw new Error(`${file}: the request is not on a line of its own`);
    const name = file.replace(/\.json$/, "");
    const tag = GROUPS.find((each) => each === "imported" ? tags.includes(each) : each === tags.find((tag) => GROUPS.includes(tag)));
    const label = LABELS[tag] ?? `${tag[0].toUpperCase()}${tag.slice(1)}`;
    const first = START.indexOf(name);
    const group = first < 0 ? label : "Start here";
    const nodes = [graph, ...(graph.functions ?? [])].reduce((count, each) => count + each.nodes.length, 0);
    const order = first < 0 ? [(GROUPS.indexOf(tag) || GROUPS.length) + 1, nodes] : [0, first];
    const about = JSON.stringify({ name, group, title, paragraph, mode });
    return { name, order, text: `${about.slice(0, -1)},${request.trim().replace(/,$/, "")}}` };
  }));
  const byOrder = (left, right) =>
    left.order[0] - right.order[0] || left.order[1] - right.order[1] || (left.name < right.name ? -1 : 1);
  return `[${all.sort(byOrder).map(({ text }) => text).join(",\n")}]\n`;
}

/** The files of the page by name. Addresses contain a hash of the content, so that browsers never use an old file. */
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
    console.error(`stale, run \`make playground\`: ${stale.join(", ")}, in ${relative(ROOT, TARGET)}`);
    process.exitCode = 1;
  }
} else {
  await rm(TARGET, { recursive: true, force: true });
  await mkdir(TARGET, { recursive: true });
  await Promise.all(Object.entries(files).map(([name, content]) => writeFile(join(TARGET, name), content)));
}
for (const [name, content] of Object.entries(files)) console.log(`${name}: ${Buffer.from(content).length} bytes`);
