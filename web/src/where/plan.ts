// What GET /v1/explain/MODEL gives.
export interface Choice { op: string; format: string; device: string; kernel: string; why: string; rejected: { why: string; kernels: string[] }[] }
export type Op = [name: string, output: string, choice: number];
export interface Memory {
  device: string; name: string; memory_total: number; free: number; total: number; read_bytes_per_second: number | null;
  weights: number; kv_cache: number; activations: number; step: number; output: number; scratch: number;
}
export interface Explained {
  architecture: string; layers: number; context: number; batch: number; kv_type: string; kv_rotation: { rotated: boolean; reason: string }; weight_bytes_per_token: number;
  devices: Memory[]; host: { sessions: number; total: number; free: number };
  placement: { device: string; contents: string; reason: string }[];
  programs: { purpose: string; rows: number; ops: Op[] }[];
  choices: Choice[];
}

// Ops of one place: "blk.3.attn_q" is of layer 3. Neighbours that are computed alike are one row of the drawing.
export interface Row { first: number; last: number; name: string; ops: Op[] } // layers; -1 outside of them

export function rows(ops: Op[]): Row[] {
  const all: Row[] = [];
  for (const op of ops) {
    const layer = Number(/^blk\.(\d+)\./.exec(op[0])?.[1] ?? -1), last = all.at(-1);
    if (last && last.last === layer) last.ops.push(op);
    else all.push({ first: layer, last: layer, name: '', ops: [op] });
  }
  const alike = (a: Row, b: Row) => a.ops.length === b.ops.length && a.ops.every((op, i) => op[2] === b.ops[i][2] && op[1] === b.ops[i][1]);
  const merged: Row[] = [];
  for (const row of all) {
    const last = merged.at(-1);
    if (last && row.first >= 0 && last.last === row.first - 1 && alike(last, row)) last.last = row.last;
    else merged.push(row);
  }
  for (const [i, row] of merged.entries())
    row.name = row.first < 0 ? (i === 0 ? 'Before' : 'After') : row.first === row.last ? `Layer ${row.first}` : `Layers ${row.first} to ${row.last}`;
  return merged;
}

// As `gimbal plan` writes it. Only quantized caches are rotated.
export const cacheFormat = ({ kv_type, kv_rotation }: Explained) => (/^b?f\d/.test(kv_type) ? kv_type : `${kv_type}, ${kv_rotation.rotated ? '' : 'not '}rotated: ${kv_rotation.reason}`);

export const plainName = (op: Op) => op[0].replace(/^blk\.\d+\./, '');

export const kSmall = 64e6; // bytes of weights that a processor's cache may hold

// Steps per second that the memory allows if each reads all weights once; 0: not known.
export const stepLimit = (workers: Explained[]) =>
  workers.reduce((sum, w) => sum + (w.devices.length === 1 && w.devices[0].read_bytes_per_second && w.weight_bytes_per_token ? w.devices[0].read_bytes_per_second / w.weight_bytes_per_token : 0), 0);
