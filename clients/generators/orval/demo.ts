import { gradients, gradientsOfGraph, registerGraph, type Feed, type Graph } from './client/api.js';

// What orval generates asks for paths: a page of the server's own would need no more.
const plain = globalThis.fetch;
globalThis.fetch = (path, init) => plain(new URL(String(path), process.argv[2]), init);

const graph: Graph = {
  nodes: [
    { op: 'input', name: 'x' }, { op: 'parameter', name: 'w' }, { op: 'input', name: 'y' },
    { op: 'matmul', operands: [0, 1] }, { op: 'sub', operands: [3, 2] }, { op: 'square', operands: [4] },
    { op: 'mean', operands: [5] },
  ],
};
const feed = (node: number, shape: number[], data: number[]): Feed => ({ node, tensor: { dtype: 'float64', shape, data } });
const feeds = [feed(0, [2, 2], [1, 2, 3, 4]), feed(1, [2], [1, 1]), feed(2, [2], [2, 8])];
const wrong: Graph = { nodes: [{ op: 'input' }, { op: 'matmul', operands: [0, 7] }] };
const decay: Graph = {
  opset: 2,
  functions: [
    {
      name: 'euler',
      outputs: [4, 4],
      nodes: [
        { op: 'input', name: 'k' }, { op: 'input', name: 'y' }, { op: 'mul', operands: [0, 1] },
        { op: 'mul_scalar', operands: [2], attrs: { scalar: -0.5 } }, { op: 'add', operands: [1, 3] },
      ],
    },
  ],
  nodes: [
    { op: 'parameter', name: 'k' }, { op: 'input', name: 'y0' },
    { op: 'scan', operands: [0, 1], attrs: { body: 0, carries: 1, length: 4 } },
    { op: 'get_output', operands: [2], attrs: { index: 1 } }, { op: 'sum', operands: [3] },
  ],
};
const start = [feed(0, [], [1]), feed(1, [], [16])];

const registered = await registerGraph({ graph });
if (registered.status !== 200 && registered.status !== 201) throw new Error(registered.data.detail);
const answer = await gradientsOfGraph(registered.data.graph_id, { feeds });
if (answer.status !== 200) throw new Error(answer.data.detail);
console.log('gradient', ...(answer.data.gradients[0]?.tensor.data ?? []));

// The types have no null, but the server treats it as absent.
const none = null as never;
const nodes = graph.nodes.map((node) => ({ attrs: none, name: none, ...node }));
const nulls = feeds.map(({ node, tensor }) => ({ node, tensor: { ...tensor!, data_b64: none } }));
const same = await gradients({ graph: { nodes }, feeds: nulls, of: none, wrt: none });
if (same.status !== 200) throw new Error(same.data.detail);
console.log('nulls', ...(same.data.gradients[0]?.tensor.data ?? []));

const loop = await gradients({ graph: decay, feeds: start });
if (loop.status !== 200) throw new Error(loop.data.detail);
console.log('functions', ...(loop.data.values[0]?.tensor.data ?? []), ...(loop.data.gradients[0]?.tensor.data ?? []));

const refused = await gradients({ graph: wrong, feeds: [] });
if (refused.status !== 200) console.log('refused', refused.data.code, refused.data.node);
