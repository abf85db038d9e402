import { createClient } from './client/client/index.js';
import { gradients, gradientsOfGraph, registerGraph } from './client/sdk.gen.js';
import type { Feed, Graph } from './client/types.gen.js';

const client = createClient({ baseUrl: process.argv[2] ?? '' });

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

const { data: registered } = await registerGraph({ client, body: { graph }, throwOnError: true });
const { data: answer } = await gradientsOfGraph({
  client, path: { graph_id: registered.graph_id }, body: { feeds }, throwOnError: true,
});
console.log('gradient', ...(answer.gradients[0]?.tensor.data ?? []));

const { error } = await gradients({ client, body: { graph: wrong, feeds: [] } });
if (error) console.log('refused', error.code, error.node);
