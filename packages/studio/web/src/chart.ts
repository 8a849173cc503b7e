/** Draws lines per day. Loaded when a chart is shown. */
import uPlot from 'uplot';
import 'uplot/dist/uPlot.min.css';
import { dayName, dollars, shown, tokens } from './format.js';
import type { Series } from './money.js';

/** The lines are shades of one colour, so their dashes tell them apart. */
const DASHES: readonly (readonly number[])[] = [[], [8, 4], [2, 3], [12, 4, 2, 4], [5, 2], [1, 4]];

/** The border that looks most like each of them, for the legend. */
const BORDERS = ['solid', 'dashed', 'dotted', 'dashed', 'dotted', 'dotted'] as const;

export function draw(
  box: HTMLElement,
  width: number,
  { days, lines }: Series,
  what: 'cost' | 'tokens',
): { destroy(): void } {
  const colour = (name: string) => resolved(`var(${name})`);
  const value = what === 'cost' ? dollars : tokens;
  const shade = (index: number) =>
    index === 0
      ? colour('--accent')
      : `color-mix(in srgb, ${colour('--accent')} ${100 - index * 16}%, ${colour('--muted')})`;
  const grid = { stroke: colour('--line'), width: 1 };
  return new uPlot(
    {
      width,
      height: 260,
      series: [
        { value: (_, at) => (at === null ? '–' : dayName(at * 1000)), label: 'Day' },
        ...lines.map(({ name }, index) => ({
          label: shown(name),
          stroke: resolved(shade(index)),
          width: 2,
          dash: [...DASHES[index % DASHES.length]!],
          points: { show: days.length < 40, size: 6 },
          value: (_: uPlot, one: number | null) => (one === null ? '–' : value(one)),
        })),
      ],
      axes: [
        {
          stroke: colour('--muted'),
          grid: { show: false },
          ticks: grid,
          values: (_, at) => at.map((one) => dayName(one * 1000)),
          space: 70,
          incrs: [1, 2, 3, 7, 14, 30, 90, 365].map((n) => n * 86_400),
        },
        {
          stroke: colour('--muted'),
          grid,
          ticks: { show: false },
          size: 76,
          values: (_, all) => all.map((one) => value(one)),
        },
      ],
      scales: { y: { range: (_, __, most) => [0, Math.max(most * 1.1, 1e-6)] } },
      // The legend shows how each line is drawn: the shades alone are too much alike.
      legend: { live: true, markers: { dash: (_, index) => BORDERS[(index - 1) % BORDERS.length]! } },
    },
    [days.map((day) => day / 1000), ...lines.map(({ values }) => [...values])],
    box,
  );
}

/** A colour for a canvas, worked out by an element: a canvas knows no variables and, in some browsers, no `color-mix`. */
function resolved(text: string): string {
  const probe = document.createElement('i');
  probe.style.color = text;
  document.body.append(probe);
  const { color } = getComputedStyle(probe);
  probe.remove();
  return color;
}
