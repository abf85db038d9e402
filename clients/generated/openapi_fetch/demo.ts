import createClient from 'openapi-fetch';
import type { components, paths } from './client/schema.js';

type Graph = components['schemas']['Graph'];
type Feed = components['schemas']['Feed'];

const client = createClient<paths>({ baseUrl: process.argv[2] ?? '' });

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

const { data: registered, error: unregistered } = await client.POST('/v1/graphs', { body: { graph } });
if (!registered) throw new Error(unregistered.detail);
const { data: answer, error: unanswered } = await client.POST('/v1/graphs/{graph_id}/gradients', {
  params: { path: { graph_id: registered.graph_id } }, body: { feeds },
});
if (!answer) throw new Error(unanswered.detail);
console.log('gradient', ...(answer.gradients[0]?.tensor.data ?? []));

const { error } = await client.POST('/v1/gradients', { body: { graph: wrong, feeds: [] } });
if (error) console.log('refused', error.code, error.node);
