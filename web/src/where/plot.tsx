// A line that moves with the last two minutes, under its present number and a word on what it means.
import type { ComponentChildren } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import uPlot from 'uplot';
import 'uplot/dist/uPlot.min.css';
import { kColoursChanged } from '../store';
import type { Sample } from './numbers';

export const kShown = 120; // seconds

export interface Line { name: string; colour: string; of: (s: Sample) => number | null }

const colour = (name: string) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

export function Plot({ title, now, word, lines, samples }: { title: string; now: ComponentChildren; word: string; lines: Line[]; samples: Sample[] }) {
  const at = useRef<HTMLDivElement>(null), plot = useRef<uPlot | undefined>(undefined);
  useEffect(() => {
    const el = at.current!; // for as long as the observer: it may look once more when the view is gone
    const axis = { stroke: () => colour('--soft'), grid: { stroke: () => colour('--line'), width: 1 }, ticks: { show: false }, font: '11px sans-serif' };
    const made = new uPlot({
      width: el.clientWidth, height: 120, legend: { show: false }, cursor: { show: false }, padding: [8, 16, 0, 0],
      scales: { x: { time: false, range: () => [-kShown, 0] }, y: { range: (_, __, most) => [0, Math.max(1, most * 1.1)] } },
      axes: [{ ...axis, size: 22, splits: () => [-120, -90, -60, -30, 0], values: (_, v) => v.map((x) => (x ? `${x} s` : 'now')) }, { ...axis, size: 44, splits: (u) => [0, (u.scales.y.max ?? 1) / 2, u.scales.y.max ?? 1], values: (_, v) => v.map((x) => (x >= 10 ? Math.round(x).toLocaleString('en') : String(Math.round(x * 10) / 10))) }],
      series: [{}, ...lines.map((l) => ({ stroke: () => colour(l.colour), width: 2, points: { show: false } }))],
    }, [[], ...lines.map(() => [])], el);
    plot.current = made;
    const watch = new ResizeObserver(() => made.setSize({ width: el.clientWidth, height: 120 }));
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
      <figcaption><b>{title}</b> <span class="big">{now}</span><small>{word}</small></figcaption>
      <div ref={at} class="canvas" aria-hidden="true" />
      {lines.length > 1 && <p class="legend" aria-hidden="true">{lines.map((l) => <span key={l.name}><i style={{ background: `var(${l.colour})` }} />{l.name}</span>)}</p>}
    </figure>
  );
}
