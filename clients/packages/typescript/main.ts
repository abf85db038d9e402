import { Client, Graph } from "gradserve-client";

const graph = new Graph();
const x = graph.input("x");
const w = graph.parameter("w");
const loss = graph.sum(graph.tanh(graph.mul(x, w)));

const client = new Client("http://127.0.0.1:8000");
const answer = await client.gradients(graph, { x: [1, 2], w: [0.5, 0.5] }, { of: loss });
console.log(answer.value.item(), answer.gradients.get(w).data);
