/** A request as a program in several languages. Each needs as few packages as possible. */

/** The request of a program; with `hasKey`, it reads the key from GRADSERVE_API_KEY. */
export interface Sent {
  /** the server's address, without a trailing slash */
  readonly url: string;
  readonly call: string;
  /** the formatted body */
  readonly body: string;
  readonly hasKey: boolean;
}

/** The function that writes a program, by language. */
export const PROGRAMS: { readonly [language: string]: (sent: Sent) => string } = {
  curl,
  Python: python,
  TypeScript: typescript,
  Go: go,
  Rust: rust,
  Java: java,
  "C++": cpp,
};

const KEY = "GRADSERVE_API_KEY";
const HEADER = "Authorization: Bearer ";

/**
 * Escape the characters that end a string literal in one of the languages, and all that are not ASCII. They occur only in
 * JSON strings, where an escape has the same meaning.
 */
function safe(body: string): string {
  return body.replace(/['`#$)?\u007f-\uffff]/g, (sign) => `\\u${sign.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

function lines(...parts: readonly (string | false)[]): string {
  return `${parts.filter((part) => part !== false).join("\n")}\n`;
}

function curl({ url, call, body, hasKey }: Sent): string {
  return lines(
    "# A POSIX shell, with curl.",
    `curl --silent --show-error '${url}/v1/${call}' \\`,
    "  --header 'Content-Type: application/json' \\",
    hasKey && `  --header "${HEADER}$${KEY}" \\`,
    "  --data-binary @- <<'END'",
    body,
    "END",
  );
}

function python({ url, call, body, hasKey }: Sent): string {
  return lines(
    "# Python 3, standard library only: python3 request.py",
    "import json",
    hasKey && "import os",
    "import sys",
    "import urllib.error",
    "import urllib.request",
    "",
    `BODY = r'''${safe(body)}'''`,
    "",
    'headers = {"Content-Type": "application/json"}',
    hasKey && `headers["Authorization"] = "Bearer " + os.environ["${KEY}"]`,
    `request = urllib.request.Request("${url}/v1/${call}", BODY.encode(), headers)`,
    "try:",
    "    with urllib.request.urlopen(request) as answer:",
    "        print(json.dumps(json.load(answer), indent=1))",
    "except urllib.error.HTTPError as refusal:",
    "    sys.exit(refusal.read().decode())",
  );
}

function typescript({ url, call, body, hasKey }: Sent): string {
  return lines(
    "// Node 20 or newer, no packages: node request.mjs (Node 22.18 or newer also runs it as request.ts)",
    `const body = String.raw\`${safe(body)}\`;`,
    "",
    `const answer = await fetch("${url}/v1/${call}", {`,
    '  method: "POST",',
    hasKey
      ? `  headers: { "Content-Type": "application/json", Authorization: \`Bearer \${process.env.${KEY}}\` },`
      : '  headers: { "Content-Type": "application/json" },',
    "  body,",
    "});",
    "console.log(await answer.text());",
    "if (!answer.ok) process.exitCode = 1;",
  );
}

function go({ url, call, body, hasKey }: Sent): string {
  return lines(
    "// Go, standard library only: go run request.go",
    "package main",
    "",
    "import (",
    '\t"io"',
    '\t"log"',
    '\t"net/http"',
    '\t"os"',
    '\t"strings"',
    ")",
    "",
    `const body = \`${safe(body)}\``,
    "",
    "func main() {",
    `\trequest, err := http.NewRequest("POST", "${url}/v1/${call}", strings.NewReader(body))`,
    "\tif err != nil {",
    "\t\tlog.Fatal(err)",
    "\t}",
    '\trequest.Header.Set("Content-Type", "application/json")',
    hasKey && `\trequest.Header.Set("Authorization", "Bearer "+os.Getenv("${KEY}"))`,
    "\tanswer, err := http.DefaultClient.Do(request)",
    "\tif err != nil {",
    "\t\tlog.Fatal(err)",
    "\t}",
    "\tdefer answer.Body.Close()",
    "\tif _, err := io.Copy(os.Stdout, answer.Body); err != nil {",
    "\t\tlog.Fatal(err)",
    "\t}",
    "\tif answer.StatusCode != 200 {",
    "\t\tos.Exit(1)",
    "\t}",
    "}",
  );
}

function rust(sent: Sent): string {
  return sent.url.startsWith("https:") ? rustByCrate(sent) : rustAlone(sent);
}

/** The standard library has TCP and no TLS: enough for a server that is near. */
function rustAlone({ url, call, body, hasKey }: Sent): string {
  const { host, port, hostname, pathname } = new URL(url);
  const path = `${pathname.replace(/\/$/, "")}/v1/${call}`;
  const key = hasKey ? `${HEADER}{}\\r\\n` : "";
  return lines(
    "// Rust, standard library only: rustc request.rs && ./request",
    "use std::io::{Read, Write};",
    "",
    `const BODY: &str = r#"${safe(body)}"#;`,
    "",
    "fn main() -> Result<(), Box<dyn std::error::Error>> {",
    hasKey && `    let key = std::env::var("${KEY}")?;`,
    `    let mut stream = std::net::TcpStream::connect("${hostname}:${port || 80}")?;`,
    "    write!(",
    "        stream,",
    `        "POST ${path} HTTP/1.0\\r\\nHost: ${host}\\r\\nContent-Type: application/json\\r\\n${key}Content-Length: {}\\r\\n\\r\\n{}",`,
    `        ${hasKey ? "key, " : ""}BODY.len(), BODY`,
    "    )?;",
    "    let mut answer = String::new();",
    "    stream.read_to_string(&mut answer)?;",
    '    let (head, body) = answer.split_once("\\r\\n\\r\\n").ok_or("no answer")?;',
    '    println!("{body}");',
    '    if head.split(\' \').nth(1) == Some("200") { Ok(()) } else { Err("refused".into()) }',
    "}",
  );
}

function rustByCrate({ url, call, body, hasKey }: Sent): string {
  return lines(
    "// Rust with a crate for TLS: cargo init; cargo add ureq; save this as src/main.rs; cargo run",
    `const BODY: &str = r#"${safe(body)}"#;`,
    "",
    "fn main() -> Result<(), Box<dyn std::error::Error>> {",
    `    let answer = ureq::post("${url}/v1/${call}")`,
    '        .header("Content-Type", "application/json")',
    hasKey && `        .header("Authorization", format!("Bearer {}", std::env::var("${KEY}")?))`,
    "        .send(BODY)?;",
    '    println!("{}", answer.into_body().read_to_string()?);',
    "    Ok(())",
    "}",
  );
}

/** A constant of Java holds 65,535 bytes. */
const JAVA_PIECE = 60_000;

function java({ url, call, body, hasKey }: Sent): string {
  return lines(
    "// Java 17 or newer, standard library only: java Request.java",
    "import java.net.URI;",
    "import java.net.http.HttpClient;",
    "import java.net.http.HttpRequest;",
    "import java.net.http.HttpResponse;",
    "",
    "class Request {",
    `    static final String BODY = String.join("\\n", ${javaPieces(safe(body)).join(", ")});`,
    "",
    "    public static void main(String[] arguments) throws Exception {",
    `        var request = HttpRequest.newBuilder(URI.create("${url}/v1/${call}"))`,
    '            .header("Content-Type", "application/json")',
    hasKey && `            .header("Authorization", "Bearer " + System.getenv("${KEY}"))`,
    "            .POST(HttpRequest.BodyPublishers.ofString(BODY))",
    "            .build();",
    "        var answer = HttpClient.newHttpClient().send(request, HttpResponse.BodyHandlers.ofString());",
    "        System.out.println(answer.body());",
    "        if (answer.statusCode() != 200) System.exit(1);",
    "    }",
    "}",
  );
}

/** Text blocks of as many lines as a constant holds; a longer line is a sum, which is none. */
function javaPieces(body: string): readonly string[] {
  const pieces: string[][] = [[]];
  for (const line of body.split("\n")) {
    const size = (pieces.at(-1) as string[]).reduce((sum, each) => sum + each.length + 1, line.length);
    if (size > JAVA_PIECE && pieces.at(-1)?.length) pieces.push([]);
    (pieces.at(-1) as string[]).push(line);
  }
  return pieces.map((piece) => {
    const [first = ""] = piece;
    if (first.length <= JAVA_PIECE) return `"""\n${piece.join("\n").replaceAll("\\", "\\\\")}"""`;
    const parts = first.match(new RegExp(`.{1,${JAVA_PIECE}}`, "g")) ?? [];
    return `String.join("", ${parts.map((part) => JSON.stringify(part)).join(", ")})`;
  });
}

function cpp({ url, call, body, hasKey }: Sent): string {
  return lines(
    "// C++17 with libcurl: g++ -std=c++17 request.cpp -lcurl && ./a.out",
    "#include <curl/curl.h>",
    "",
    "#include <cstdio>",
    hasKey && "#include <cstdlib>",
    "#include <string>",
    "",
    `const std::string body = R"json(${safe(body)})json";`,
    "",
    "int main() {",
    "  CURL* curl = curl_easy_init();",
    '  curl_slist* headers = curl_slist_append(nullptr, "Content-Type: application/json");',
    hasKey && `  const std::string key = std::string("${HEADER}") + std::getenv("${KEY}");`,
    hasKey && "  headers = curl_slist_append(headers, key.c_str());",
    `  curl_easy_setopt(curl, CURLOPT_URL, "${url}/v1/${call}");`,
    "  curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers);",
    "  curl_easy_setopt(curl, CURLOPT_POSTFIELDS, body.c_str());",
    "  curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(body.size()));",
    "  const CURLcode done = curl_easy_perform(curl);  // prints the response",
    "  long status = 0;",
    "  curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);",
    '  if (done != CURLE_OK) std::fprintf(stderr, "%s\\n", curl_easy_strerror(done));',
    "  curl_slist_free_all(headers);",
    "  curl_easy_cleanup(curl);",
    "  return done == CURLE_OK && status == 200 ? 0 : 1;",
    "}",
  );
}
