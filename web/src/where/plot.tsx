// A chart of the last two minutes, under its present number and an explanation. Both axes follow the data.
import type { ComponentChildren } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import uPlot from 'uplot';
import 'uplot/dist/uPlot.min.css';
import { kColoursChanged } from '../store';
import type { Sample } from './numbers';

export const kShown = 120; // seconds
const kShortest = 10, kHeight = 120;

export interface Line { name: string; colour: string; of: (s: Sample) => number | null }

const colour = (name: string) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

// The smallest of 1, 2, 4, 5 or 10 times a power of ten that is not below `most`; its half is a short number, too.
function roundedUp(most: number): number {
  const power = 10 ** Math.floor(Math.log10(most));
  return power * [1, 2, 4, 5, 10].find((n) => n * power >= most * 0.9999)!;
}
// Seconds between two marks of the time: their names stand apart in the narrowest chart.
const timeStep = (span: number) => [2, 5, 10, 20, 30].find((step) => span / step <= (span > 20 ? 4.2 : 5)) ?? 30;

function timeMarks(span: number): number[] {
  const step = timeStep(span), all: number[] = [];
  for (let at = 0; at <= span + 1e-6; at += step) all.unshift(-at);
  return all;
}

// `nothing`: shown in place of a chart whose values are all zero or unknown.
export function Plot({ title, now, word, nothing, lines, samples }: { title: string; now: ComponentChildren; word: string; nothing: string; lines: Line[]; samples: Sample[] }) {
  const at = useRef<HTMLDivElement>(null), plot = useRef<uPlot | undefined>(undefined);
  const empty = !samples.some((s) => lines.some((l) => l.of(s)));
  useEffect(() => {
    const el = at.current!; // for as long as the observer: it may look once more when the view is gone
    const axis = { stroke: () => colour('--soft'), grid: { stroke: () => colour('--line'), width: 1 }, ticks: { show: false }, font: '11px sans-serif' };
    const made = new uPlot({
      width: el.clientWidth, height: kHeight, legend: { show: false }, cursor: { show: false }, padding: [8, 16, 0, 0],
      scales: { x: { time: false, range: (_, first) => [Math.min(first ?? 0, -kShortest), 0] }, y: { range: (_, __, most) => [0, most > 0 ? roundedUp(most) : 1] } },
      axes: [
        { ...axis, size: 22, splits: (u) => timeMarks(-(u.scales.x.min ?? -kShortest)), values: (_, v) => v.map((x) => (x ? `${x} s` : 'now')) },
        { ...axis, size: 44, splits: (u) => { const most = u.scales.y.max ?? 1; return [0, most / 2, most]; }, values: (u, v) => v.map((x) => ((u.data.slice(1).some((line) => line.some((y) => y)) ? x.toLocaleString('en', { maximumSignificantDigits: 3 }) : ''))) },
      ],
      series: [{}, ...lines.map((l) => ({ stroke: () => colour(l.colour), width: 2, points: { show: false } }))],
    }, [[], ...lines.map(() => [])], el);
    plot.current = made;
    const watch = new ResizeObserver(() => made.setSize({ width: el.clientWidth, height: kHeight }));
    watch.observe(el);
    const redraw = () => made.redraw(); // in the colours of now
    const media = matchMedia('(prefers-color-scheme: dark)');
    media.addEventListener('change', redraw);
    addEventListener(kColoursChanged, redraw);
    return () => { media.removeEventListener('change', redraw); removeEventListener(kColoursChanged, redraw); watch.disconnect(); made.destroy(); };
  }, []);
  useEffect(() => {
    const end = samples.at(-1)?.at ?? 0;
    plot.current?.setData([samples.map((s) => (s.at - end) / 1000), ...lines.map((l) => samples.map(l.of))]);
  });
  return (
    <figure class="plot">
      <figcaption><b>{title}</b><span class="big">{now}</span><small>{word}</small></figcaption>
      <div ref={at} class="canvas" aria-hidden={!empty}>{empty && <p class="nothing"><span>{nothing}</span></p>}</div>
      {lines.length > 1 && <p class="legend" aria-hidden="true">{lines.map((l) => <span key={l.name}><i style={{ background: `var(${l.colour})` }} />{l.name}</span>)}</p>}
    </figure>
  );
}
