// Grades a page of a server on this machine by Mozilla's rules: `node grade.mjs PORT PATH` prints JSON. Their own command
// asks the ports 80 and 443, and loads a list of the hosts that are known to speak TLS alone; the list here is empty.

import { writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

const rules = import.meta.resolve("@mdn/mdn-http-observatory");
writeFileSync(fileURLToPath(new URL("../conf/hsts-preload.json", rules)), "{}");

const { ALL_TESTS } = await import(new URL("constants.js", rules));
const { getGradeForScore, getScoreModifier } = await import(new URL("grader/grader.js", rules));
const { retrieve } = await import(new URL("retriever/retriever.js", rules));

const [port, path] = process.argv.slice(2);
const page = await retrieve("localhost", { httpPort: port, httpsPort: port, path });
const tests = ALL_TESTS.map((test) => {
  const { constructor, pass, result } = test(page);
  return { name: constructor.name, pass, result, points: getScoreModifier(result) };
});
const score = tests.reduce((sum, { points }) => sum + points, 100);
console.log(JSON.stringify({ status: page.responses.auto?.status, grade: getGradeForScore(score).grade, score, tests }));
