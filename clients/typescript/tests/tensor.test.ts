/** Tensors, as far as they are of this language: its arrays, and numbers that do not hold all. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { reordered } from "../src/bytes.js";
import { fromHalf, toHalf } from "../src/half.js";
import { InputError, MalformedAnswerError, Tensor, tensor } from "../src/index.js";
import { parse, parseUnique, write } from "../src/json.js";
import { decode, encode } from "../src/safetensors.js";
import { fromJson, toJson } from "../src/tensor-json.js";

test("typed arrays are not copied, neither into a file nor out of it", () => {
  const data = new Float32Array([1, 2, 3]);
  const [header, bytes] = encode(new Map([["t", tensor(data)]]));
  assert.equal(bytes?.buffer, data.buffer);
  const file = new Uint8Array(Buffer.concat([header as Uint8Array, bytes as Uint8Array]));
  assert.equal(decode(file).tensors.get("t")?.data.buffer, file.buffer);
});

test("bytes that lie askew are read", () => {
  const bytes = new Uint8Array([9, 0, 0, 128, 63]).subarray(1);
  assert.deepEqual([...Tensor.fromBytes(bytes, "float32", [1]).data], [1]);
});

test("shared memory is sent as a copy", () => {
  const shared = new Float64Array(new SharedArrayBuffer(8));
  assert.ok(tensor(shared).bytes().buffer instanceof ArrayBuffer);
});

test("a machine of the other order turns elements around", () => {
  const bytes = new Uint8Array([1, 2, 3, 4]);
  assert.deepEqual([...reordered(bytes, 2, false)], [2, 1, 4, 3]);
  assert.deepEqual([...bytes], [1, 2, 3, 4]);
});

test("numbers and lists have the dtype that is said, or that of their like", () => {
  assert.equal(tensor(1).dtype, "float64");
  assert.deepEqual(tensor([[1n], [2n]]).shape, [2, 1]);
  assert.equal(tensor([1n]).dtype, "int64");
  assert.equal(tensor([true, false]).dtype, "bool");
  assert.equal(tensor([]).dtype, "float64");
  assert.deepEqual(tensor([[], []]).shape, [2, 0]);
  assert.deepEqual([...tensor([0.1, NaN, Infinity], "float16").data], [0x2e66, 0x7e00, 0x7c00]);
  assert.equal(tensor(new Uint16Array([0x3c00]), "float16").nested()?.toString(), "1");
});

test("shapes that do not fit are refused", () => {
  const none = new Float64Array();
  assert.equal(new Tensor("float64", [2 ** 48, 0], none).size, 0);
  for (const shape of [[2 ** 62, 0], [2 ** 50, 0], [0, 2 ** 40, 2 ** 40], [-1, 0], [0.5, 0], Array(65).fill(0)]) {
    assert.throws(() => new Tensor("float64", shape, none), InputError, `[${shape}]`);
  }
  const text = '{"dtype":"float64","shape":[4611686018427387904,0],"data":[]}';
  assert.throws(() => fromJson(parse(text)), MalformedAnswerError);
});

test("what a dtype does not hold is refused", () => {
  const refused: [Parameters<typeof tensor>[0], Parameters<typeof tensor>[1]][] = [
    [1.5, "int32"],
    [256, "uint8"],
    [2 ** 32, "uint32"],
    [-1, "uint32"],
    [2 ** 15, "int16"],
    [new Int32Array(1), "uint32"],
    [2n ** 63n, "int64"],
    [1e39, "float32"],
    [65520, "float16"],
    [2, "bool"],
    [NaN, "int8"],
    [[[1], 2], undefined],
    [[1, true], undefined],
    [new Uint16Array(1), undefined],
    [new Uint8Array([2]), "bool"],
    [new Float64Array(1), "float32"],
  ];
  for (const [value, dtype] of refused) assert.throws(() => tensor(value, dtype), InputError, `${value} as ${dtype}`);
});

test("elements come back as they are read", () => {
  assert.equal(tensor(5n).item(), 5n);
  assert.equal(tensor(true).item(), true);
  assert.equal(tensor(-0, "float16").item(), -0);
  assert.deepEqual(tensor([[[1, 2], [3, 4], [5, 6]]]).nested(), [[[1, 2], [3, 4], [5, 6]]]);
  assert.deepEqual(tensor([[], []]).nested(), [[], []]);
  assert.equal(tensor(7).nested(), 7);
  assert.throws(() => tensor([1, 2]).item(), InputError);
  assert.throws(() => tensor(1).as("int8"), InputError);
  const typed: Float32Array = tensor(1, "float32").data;
  assert.equal(typed[0], 1);
  const words: Uint32Array = tensor([0, 2 ** 32 - 1], "uint32").data;
  assert.equal(words[1], 2 ** 32 - 1);
  assert.equal(tensor(words).dtype, "uint32");
});

test("complex numbers are two numbers of an array each", () => {
  const z = tensor(new Float64Array([1, 2, -0, -4]), "complex128");
  assert.deepEqual([z.shape, z.size], [[2], 2]);
  assert.deepEqual(z.complexAt(1), { re: -0, im: -4 });
  assert.deepEqual(z.nested(), [{ re: 1, im: 2 }, { re: -0, im: -4 }]);
  assert.deepEqual(tensor({ re: 3, im: -4 }).item(), { re: 3, im: -4 });
  const single: Float32Array = tensor([[{ re: 1, im: 2 }], [5]], "complex64").data;
  assert.deepEqual([...single], [1, 2, 5, 0]);
  assert.deepEqual([...tensor([1, { re: 0, im: 1 }]).data], [1, 0, 0, 1]);
  assert.equal(tensor(new Float64Array(2)).dtype, "float64");
  assert.throws(() => tensor(new Float64Array(3), "complex128"), InputError);
  assert.throws(() => new Tensor("complex64", [2], new Float32Array(2)), InputError);
  assert.throws(() => tensor({ re: 1, im: 2 }, "float64"), InputError);
  assert.throws(() => tensor({ re: 1e39, im: 2 }, "complex64"), InputError);
  assert.throws(() => z.complexAt(2), InputError);
  assert.throws(() => tensor([1, 2]).as("complex128"), InputError);
});

test("complex numbers travel as their parts", () => {
  const z = new Tensor("complex64", [1, 2], new Float32Array([1, -2, -0, 0.5]));
  assert.equal(write(toJson(z, "json")), '{"dtype":"complex64","shape":[1,2],"data":[1,-2,-0.0,0.5]}');
  assert.ok("data_b64" in toJson(tensor({ re: 0, im: Infinity }), "json"));
  const tensors = new Map<string, Tensor>([
    ["x", tensor(1)],
    ["é", z],
  ]);
  const file = new Uint8Array(Buffer.concat(encode(tensors, { for: "all" })));
  const header = JSON.parse(new TextDecoder().decode(file.subarray(8, 8 + (file[0] ?? 0) + 256 * (file[1] ?? 0))));
  assert.deepEqual(header["__metadata__"], { for: "all", complex: '["é"]' });
  assert.deepEqual([header["é"].dtype, header["é"].shape], ["F32", [1, 2, 2]]);
  const read = decode(file);
  assert.deepEqual(read.metadata, { for: "all" });
  for (const again of [read.tensors.get("é"), fromJson(toJson(z, "json")), fromJson(toJson(z))]) {
    assert.deepEqual([again?.dtype, again?.shape], ["complex64", [1, 2]]);
    assert.deepEqual(again?.bytes(), z.bytes());
  }
});

test("what is said to be complex has a last axis of two", () => {
  const file = (complex: unknown, dtype: string, shape: number[]): Uint8Array<ArrayBuffer> => {
    const header = JSON.stringify({ __metadata__: { complex }, t: { dtype, shape, data_offsets: [0, 16] } });
    const length = new Uint8Array(new BigUint64Array([BigInt(header.length)]).buffer);
    return new Uint8Array(Buffer.concat([length, Buffer.from(header), new Uint8Array(16)]));
  };
  assert.equal(decode(file('["t"]', "F64", [2])).tensors.get("t")?.dtype, "complex128");
  assert.equal(decode(file("[]", "C64", [2])).tensors.get("t")?.dtype, "complex64");
  const broken: [unknown, string, number[]][] = [
    ['["t"]', "F64", [2, 1]],
    ['["t"]', "I64", [1, 2]],
    ['["t"]', "C64", [2]],
    ['["u"]', "F64", [2]],
    ['["toString"]', "F64", [2]],
    ['"t"', "F64", [2]],
    ["t", "F64", [2]],
    ["[null]", "F64", [2]],
    [["t"], "F64", [2]],
  ];
  for (const [names, dtype, shape] of broken) {
    assert.throws(() => decode(file(names, dtype, shape)), MalformedAnswerError, `${names} ${dtype}[${shape}]`);
  }
});

test("every float16 is read and written as itself", () => {
  for (let bits = 0; bits < 0x10000; bits += 1) {
    const number = fromHalf(bits);
    if (Number.isNaN(number)) assert.ok((bits & 0x7c00) === 0x7c00 && bits & 0x3ff);
    else assert.equal(toHalf(number), bits);
  }
});

test("halfway between two of float16, the even one is nearest", () => {
  assert.equal(toHalf(1 + 2 ** -11), 0x3c00);
  assert.equal(toHalf(1 + 3 * 2 ** -11), 0x3c02);
  assert.equal(toHalf(2 ** -25), 0);
  assert.equal(toHalf(3 * 2 ** -25), 2);
  assert.equal(toHalf(2048 - 2 ** -1), 0x6800);
});

test("whole numbers of JSON beyond those that a number holds are read exactly", () => {
  const text = '{"dtype":"int64","shape":[3],"data":[9223372036854775807,-9007199254740993,-0]}';
  assert.deepEqual([...fromJson(parse(text)).data], [2n ** 63n - 1n, -(2n ** 53n) - 1n, 0n]);
});

const TEXTS = [
  "[-0, 0, 1e2, -1.5E-3, 9007199254740993, -9007199254740993, 123456789012345678901234567890]",
  '{"a": {"__proto__": [1, 2]}, "\\u0061\\"\\\\": "x\\\\\\"y\\u2028", "": [], "n": [{}, null, true, false]}',
  '["12345678901234567890", 12345678901234567890, "-0"]',
];

for (const text of TEXTS) {
  test(`JSON is read as the built-in function does, but exactly: ${text}`, () => {
    const known = JSON.parse(text, (_, value) => (value === 0 ? 0 : value)) as unknown;
    const rounded = (value: unknown): unknown => JSON.parse(write(value)) as unknown;
    assert.deepEqual(rounded(parse(text)), JSON.parse(JSON.stringify(known)));
    assert.deepEqual(parse(write(parse(text))), parse(text));
  });
}

test("minus zero has its sign where it is no whole number", () => {
  assert.deepEqual(parse("[-0.0, -0e0, -0, 9007199254740993]"), [-0, -0, 0, 9007199254740993n]);
});

test("what is no JSON is refused by both readers", () => {
  const lists = ["[1,]", "[01]", "[+1]", "[1.]", "[.5]", "[NaN]", '["a]', "['a']", "[1"];
  for (const text of [...lists, "", '{"a":1,}', '"\\x"', "[1] 2", "tru", '{"a"}']) {
    assert.throws(() => parse(text), SyntaxError, text);
    assert.throws(() => parseUnique(text), SyntaxError, text);
  }
  assert.throws(() => parseUnique('{"a":1,"a":2}'), SyntaxError);
  assert.throws(() => parseUnique("[".repeat(1e6)), RangeError);
});

test("numbers are written so that they are read as what they are", () => {
  assert.equal(write([-0, 0, 1e21, 0.1]), "[-0.0,0,1e+21,0.1]");
  assert.equal(write([2 ** 60, 5n ** 30n]), "[1.152921504606847e+18,931322574615478515625]");
  assert.throws(() => write([NaN]), InputError);
  assert.throws(() => write({ a: new Map() }), /JSON cannot represent Map/);
});
