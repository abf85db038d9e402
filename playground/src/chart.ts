/** Tensors as SVG charts: bars for a few numbers, a line for many or for steps, a heat map for two or more axes. */

import { escaped } from "./drawing.js";
import { shownNumber } from "./values.js";

/** The elements of a real tensor, and how they lie. */
export interface Plotted {
  readonly shape: readonly number[];
  readonly elements: readonly number[];
  /** whether the first axis counts the steps of a loop */
  readonly isStepwise: boolean;
}

/** Up to this many elements, the numbers themselves are easier to read than a chart. */
export const FEW = 4;
const MOST_BARS = 32;
const MOST_CELLS = 48; // of a heat map, in each direction
const MOST_POINTS = 400;
const LOG_RATIO = 300; // a line of positive numbers that differ by more has a logarithmic axis
const [WIDTH, HEIGHT, LEFT, TOP, BOTTOM] = [340, 120, 56, 6, 18];

/** A chart of a tensor; undefined for tensors of a few elements, and of shapes that no chart suits. */
export function chart({ shape, elements, isStepwise }: Plotted): string | undefined {
  if (elements.length <= FEW || !elements.some(Number.isFinite)) return undefined;
  const extents = shape.filter((extent) => extent > 1);
  if (extents.length > 1) return heatMap(elements, extents.at(-1) as number);
  return isStepwise || elements.length > MOST_BARS ? line(elements, isStepwise) : bars(elements);
}

function bars(elements: readonly number[]): string {
  const finite = elements.filter(Number.isFinite);
  const [low, high] = [Math.min(0, ...finite), Math.max(0, ...finite)];
  const y = scale(low, high);
  const step = (WIDTH - LEFT) / elements.length;
  const gap = Math.min(4, step / 4);
  const shapes = elements.map((value, index) => {
    const [kind, to] = Number.isFinite(value) ? [value < 0 ? "minus" : "plus", value] : ["nan", high];
    const [top, bottom] = [Math.min(y(to), y(0)), Math.max(y(to), y(0))];
    const size = `y="${round(top)}" width="${round(step - gap)}" height="${round(Math.max(bottom - top, 1))}"`;
    return `<rect class="${kind}" x="${round(LEFT + index * step + gap / 2)}" ${size}>${hint(index, value)}</rect>`;
  });
  const zero = `<path class="axis" d="M${LEFT} ${round(y(0))}H${WIDTH}"/>`;
  const words = `Bar chart of ${elements.length} numbers from ${shownNumber(low)} to ${shownNumber(high)}`;
  return svg(HEIGHT, words, shapes.join("") + zero + labels(low, high, elements.length, ""));
}

function line(all: readonly number[], isStepwise: boolean): string {
  const stride = Math.ceil(all.length / MOST_POINTS);
  const points = all.map((value, index) => ({ value, index })).filter(({ index }) => index % stride === 0 || index === all.length - 1);
  const finite = all.filter(Number.isFinite);
  const [low, high] = [least(finite), -least(finite.map((value) => -value))];
  const isLog = low > 0 && high / low > LOG_RATIO;
  const y = isLog ? (value: number) => scale(Math.log(low), Math.log(high))(Math.log(value)) : scale(low, high);
  const x = (index: number) => LEFT + (index / (all.length - 1)) * (WIDTH - LEFT - 4);
  let path = "";
  let isOpen = false;
  for (const { value, index } of points) {
    if (Number.isFinite(value)) path += `${isOpen ? "L" : "M"}${round(x(index))} ${round(y(value))}`;
    isOpen = Number.isFinite(value);
  }
  const unit = isStepwise ? "step" : "index";
  const frame = `<path class="axis" d="M${LEFT} ${TOP}V${HEIGHT - BOTTOM}H${WIDTH}"/>`;
  const words = `Line chart of ${all.length} numbers over the ${unit}, from ${shownNumber(all[0] as number)} to ${shownNumber(all.at(-1) as number)}`;
  const axis = `${unit}${isLog ? ", logarithmic scale" : ""}`;
  return svg(HEIGHT, words, `${frame}<path class="curve" d="${path}"/>${labels(low, high, all.length, axis)}`);
}

/** Rows of the last axis. Of a large tensor, each cell is the mean of a block. */
function heatMap(elements: readonly number[], columns: number): string {
  const rows = elements.length / columns;
  const [tall, wide] = [Math.ceil(rows / MOST_CELLS), Math.ceil(columns / MOST_CELLS)];
  const cells: { row: number; column: number; value: number }[] = [];
  for (let row = 0; row < rows; row += tall) {
    for (let column = 0; column < columns; column += wide) {
      cells.push({ row: row / tall, column: column / wide, value: mean(elements, columns, row, column, tall, wide) });
    }
  }
  const most = -least(cells.map(({ value }) => (Number.isFinite(value) ? -Math.abs(value) : 0))) || 1;
  const [across, down] = [Math.ceil(columns / wide), Math.ceil(rows / tall)];
  const isLabelled = across <= 6 && down <= 8;
  const width = Math.min(WIDTH / across, isLabelled ? 70 : 26);
  const height = isLabelled ? 26 : Math.max(Math.min(width, 240 / down), 3);
  const shapes = cells.map(({ row, column, value }) => {
    const [x, y] = [round(column * width), round(row * height)];
    const strength = Number.isFinite(value) ? round(((isLabelled ? 0.5 : 0.9) * Math.abs(value)) / most) : 1;
    const kind = Number.isFinite(value) ? (value < 0 ? "minus" : "plus") : "nan";
    const size = `width="${round(width - 1)}" height="${round(height - 1)}"`;
    const words = isLabelled
      ? `<text class="cell" x="${round(x + width / 2)}" y="${round(y + height / 2 + 4)}" text-anchor="middle">${brief(value)}</text>`
      : "";
    const place = hint(`${row * tall}, ${column * wide}`, value);
    return `<rect class="${kind}" fill-opacity="${strength}" x="${x}" y="${y}" ${size}>${place}</rect>${words}`;
  });
  const block = tall > 1 || wide > 1 ? `, each cell the mean of a ${tall} × ${wide} block` : "";
  const words = `Heat map of ${rows} rows and ${columns} columns${block}; the strongest colour is ${shownNumber(most)}`;
  const caption = `<text x="0" y="${round(down * height + 14)}">${rows} × ${columns}, strongest colour ±${brief(most)}${block && ", block means"}</text>`;
  return svg(round(down * height + 20), words, shapes.join("") + caption);
}

function mean(elements: readonly number[], columns: number, row: number, column: number, tall: number, wide: number): number {
  let [sum, count] = [0, 0];
  for (let i = row; i < row + tall && i * columns < elements.length; i++) {
    for (let j = column; j < column + wide && j < columns; j++) {
      sum += elements[i * columns + j] as number;
      count++;
    }
  }
  return sum / count;
}

function scale(low: number, high: number): (value: number) => number {
  const span = high - low || 1;
  return (value) => TOP + (1 - (value - low) / span) * (HEIGHT - TOP - BOTTOM);
}

/** The least of many numbers, more than a call takes as arguments. */
function least(numbers: readonly number[]): number {
  return numbers.reduce((left, right) => Math.min(left, right), Infinity);
}

function labels(low: number, high: number, count: number, axis: string): string {
  const [x, y] = [LEFT - 6, HEIGHT - BOTTOM];
  return (
    `<text x="${x}" y="${TOP + 8}" text-anchor="end">${brief(high)}</text><text x="${x}" y="${y}" text-anchor="end">${brief(low)}</text>` +
    `<text x="${LEFT}" y="${HEIGHT - 4}">0</text><text x="${WIDTH}" y="${HEIGHT - 4}" text-anchor="end">${count - 1}</text>` +
    `<text x="${(LEFT + WIDTH) / 2}" y="${HEIGHT - 4}" text-anchor="middle">${axis}</text>`
  );
}

function hint(place: number | string, value: number): string {
  return `<title>[${place}]: ${shownNumber(value)}</title>`;
}

/** A number in at most eight characters or so. */
function brief(value: number): string {
  const plain = Number.isFinite(value) ? String(Number(value.toPrecision(3))) : String(value);
  return plain.length <= 7 ? plain : value.toExponential(1);
}

function round(value: number): number {
  return Math.round(100 * value) / 100;
}

function svg(height: number, words: string, content: string): string {
  return `<svg class="chart" viewBox="0 0 ${WIDTH} ${height}" role="img" aria-label="${escaped(words)}">${content}</svg>`;
}
