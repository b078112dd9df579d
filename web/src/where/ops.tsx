// The ops of a step, layer by layer, each with the kernel that computes it and why; arrow keys go from one to the next.
import { useState } from 'preact/hooks';
import { type Explained, type Op, plainName, rows } from './plan';

const kColours = ['--w1', '--w2', '--w3', '--w4', '--w5', '--w6'];

export function Ops({ worker }: { worker: Explained }) {
  const [program, setProgram] = useState(0), [at, setAt] = useState<[row: number, op: number]>([0, 0]);
  const p = worker.programs[Math.min(program, worker.programs.length - 1)], all = rows(p.ops);
  const [r, o] = [Math.min(at[0], all.length - 1), at[1]], chosen = all[r].ops[Math.min(o, all[r].ops.length - 1)];
  // One colour for each kind of op, in the order of how many there are.
  const kinds = new Map<string, number>();
  for (const op of p.ops) { const kind = worker.choices[op[2]].op; kinds.set(kind, (kinds.get(kind) ?? 0) + 1); }
  const order = [...kinds].sort((a, b) => b[1] - a[1]).map(([kind]) => kind);
  const colour = (op: Op) => `var(${kColours[Math.min(order.indexOf(worker.choices[op[2]].op), kColours.length - 1)]})`;
  const choice = worker.choices[chosen[2]];

  const go = (e: KeyboardEvent) => {
    const step = ({ ArrowRight: [0, 1], ArrowLeft: [0, -1], ArrowDown: [1, 0], ArrowUp: [-1, 0] } as Record<string, [number, number]>)[e.key];
    if (!step) return;
    e.preventDefault();
    const row = Math.max(0, Math.min(all.length - 1, r + step[0]));
    const next: [number, number] = [row, Math.max(0, Math.min(all[row].ops.length - 1, o + step[1]))];
    setAt(next);
    (e.currentTarget as HTMLElement).querySelectorAll<HTMLElement>('.ops-row')[next[0]].querySelectorAll<HTMLElement>('button')[next[1]].focus();
  };

  return (
    <section class="card wide" aria-label="Ops by layer">
      <h3>What a step computes, and with which kernel</h3>
      <div class="row" role="group" aria-label="Kind of step">
        {worker.programs.map((each, i) => (
          <button type="button" key={i} class="small" aria-pressed={i === program} onClick={() => { setProgram(i); setAt([0, 0]); }}>{each.purpose === 'generation' ? 'Next token' : `Prompt, ${each.rows} rows`}</button>
        ))}
      </div>
      <p class="quiet">{p.ops.length} ops a step, of {order.length} kinds. A block is an op; choose one to see its kernel. Layers that are computed alike are one line.</p>
      <div class="ops" onKeyDown={go} role="group" aria-label="Ops; arrow keys go from one to the next">
        {all.map((row, i) => (
          <div class="ops-row" key={row.name + i}>
            <span>{row.name}</span>
            <div>{row.ops.map((op, k) => (
              <button type="button" key={k} tabIndex={i === r && k === o ? 0 : -1} aria-pressed={op === chosen} style={{ background: colour(op) }} title={plainName(op)}
                aria-label={`${row.name}: ${plainName(op)}, ${worker.choices[op[2]].op}`} onClick={() => setAt([i, k])} onFocus={() => setAt([i, k])} />
            ))}</div>
          </div>
        ))}
      </div>
      <p class="legend">{order.slice(0, 5).map((kind, i) => <span key={kind}><i style={{ background: `var(${kColours[i]})` }} />{kind} ({kinds.get(kind)})</span>)}{order.length > 5 && <span><i style={{ background: 'var(--w6)' }} />others</span>}</p>
      <div class="chosen" aria-live="polite">
        <p><b>{all[r].name}, {plainName(chosen)}</b>: {choice.op} {choice.format}, gives {chosen[1]}</p>
        <p><code>{choice.kernel}</code> on {choice.device}, because: {choice.why}.</p>
      </div>
      <details class="fold"><summary>{choice.rejected.reduce((n, x) => n + x.kernels.length, 0)} kernels for it that were not taken</summary>
        <ul>{choice.rejected.map((x) => <li key={x.why}>{x.why}: {x.kernels.length > 6 ? `${x.kernels.length} kernels, such as ` : ''}{x.kernels.slice(0, 6).map((k, i) => <span key={k}>{i > 0 && ', '}<code>{k}</code></span>)}</li>)}</ul>
      </details>
    </section>
  );
}
