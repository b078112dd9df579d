// The three answers that a user wants first: which device computes the model, how fast that is compared with the machine's
// limit, and what would make it faster.
import type { Found } from './backends';
import { count, type Speed } from './numbers';
import { type Explained, kSmall, stepLimit } from './plan';

const kHost = 'cpu';
const onHost = (device: string) => device.split(':')[0] === kHost;

const devicesOf = (workers: Explained[]) => [...new Map(workers.flatMap((w) => w.devices).map((d) => [d.device, d])).values()];

export const usesGpu = (workers: Explained[]) => devicesOf(workers).some((d) => !onHost(d.device));

// "the CPU", "the GPU cuda:0", or both of them; `names`: with the hardware's names.
export function place(workers: Explained[], names = true): string {
  const one = ({ device, name }: { device: string; name: string }) => (onHost(device) ? 'the CPU' : `the GPU ${device}`) + (names && name ? ` (${name})` : '');
  const all = devicesOf(workers).map(one);
  return all.length < 2 ? all.join() : `${all.slice(0, -1).join(', ')} and ${all.at(-1)}`;
}

const rate = (n: number) => (n < 10 ? String(Math.round(n * 10) / 10) : count(n));

const small = (workers: Explained[]) => (workers[0]?.weight_bytes_per_token ?? 0) < kSmall;

// Tokens per second of one text that the memory allows, as far as it limits this model at all; 0: not known.
export const textLimit = (workers: Explained[]) => (small(workers) ? 0 : stepLimit(workers) / workers.length);

// `more`: why there is no comparison, and how to have one.
export function speedOf(workers: Explained[], { perSecond, steps }: Speed): { said: string; more: string } {
  const limit = stepLimit(workers);
  const said = perSecond ? `It writes each text at ${rate(perSecond)} tokens per second` : 'Its speed shows here as soon as it writes a text';
  if (small(workers)) return { said: `${said}.`, more: 'This model is so small that the processor’s cache holds it: the memory’s speed is no limit here.' };
  if (limit) return { said: `${said}${steps ? `, ${Math.round((100 * steps) / limit)} % of what this machine’s memory allows.` : `; this machine’s memory allows ${rate(limit)} steps per second.`}`, more: '' };
  const unknown = 'How near that is to this machine’s limit is not known: ';
  return { said: `${said}.`, more: unknown + (devicesOf(workers).length > 1 ? 'the model is on several devices.' : 'run “gimbal bench” once on the server’s machine, and start the server again.') };
}

// ---- what would make it faster, the largest gain first

const sentence = (reason: string, remedy: string) => reason + (remedy ? `; ${remedy}` : '');

// A GPU that gimbal found and the model does not use.
function unused(found: Found, used: Set<string>): string | undefined {
  const all = found.backends.filter((b) => b.backend !== kHost).flatMap((b) => b.devices).filter((d) => !d.software && !d.same_card_as);
  if (!all.length || all.some((d) => used.has(d.id))) return undefined; // with one GPU in use, others are the operator's choice
  const best = all.find((d) => d.id === found.automatic?.device) ?? all[0], name = `${best.id} (${best.name})`;
  const why = found.automatic?.rejected.find((r) => r.what === best.id);
  return why ? `use the GPU ${name}, which gimbal found and left out: ${sentence(why.reason, why.remedy)}.`
    : `use the GPU ${name}. This server was started with another “--backend”, or before the GPU was ready: start it again without that option.`;
}

// Reasons that machines without a GPU have as well.
const kSilent = ['not-built', 'library-missing', 'no-device', 'software-device', 'duplicate-device'];

function noGpu(found: Found): string {
  const absent = found.backends.filter((b) => b.backend !== kHost && !b.devices.length).map((b) => ({ name: b.name, ...(b.refused[0] ?? b) }));
  const first = absent.find((b) => !kSilent.includes(b.code));
  if (absent.length && absent.every((b) => b.code === 'not-built')) return `use a GPU. This program has no GPU backend: ${absent[0].remedy}.`;
  return first ? `use a GPU. ${first.name} found none that works: ${sentence(first.reason, first.remedy)}.`
    : 'use a GPU. gimbal found none here; “Devices of this machine”, at the end, has the reason for each kind.';
}

// Weights of 16 or 32 bits, of the matrices that most of a step reads.
function wide(worker: Explained): string | undefined {
  if (worker.weight_bytes_per_token < kSmall) return undefined;
  const formats = new Map<string, number>();
  for (const [, , choice] of worker.programs[0]?.ops ?? []) {
    const { op, format } = worker.choices[choice];
    if (op.startsWith('mat_mul')) formats.set(format, (formats.get(format) ?? 0) + 1);
  }
  const most = [...formats].sort((a, b) => b[1] - a[1])[0]?.[0] ?? '';
  const times = { f32: 6, f16: 3, bf16: 3 }[most];
  return times ? `use a smaller file: these weights are ${most}. In Q4_K_M, the same model is up to ${times} times as fast, and answers a little differently.` : undefined;
}

const kLittle = 0.3; // of the memory's limit, which one text alone exceeds on an idle machine

export function faster(workers: Explained[], found: Found | undefined, { steps, alone }: Speed): string[] {
  if (!workers.length) return [];
  const used = new Set(devicesOf(workers).map((d) => d.device)), all: (string | undefined)[] = [];
  const emulated = found?.backends.flatMap((b) => b.devices).find((d) => d.software && used.has(d.id));
  if (emulated) return [`use the CPU itself: ${emulated.id} emulates a GPU on it. Start the server with “--backend cpu”.`];
  if (found) all.push(unused(found, used));
  const gpu = usesGpu(workers), partly = workers[0].placement.find((p) => gpu && onHost(p.device));
  if (partly) all.push(`put all of it on the GPU: ${partly.contents} are on the CPU (${partly.reason}). A smaller quantization, or a shorter context (“--ctx”), leaves room for more.`);
  else if (!gpu && found && !all[0] && !small(workers)) all.push(noGpu(found));
  const limit = textLimit(workers) * workers.length;
  if (alone && limit && steps < kLittle * limit) all.push('close other programs on this machine: one text alone usually comes nearer to the limit.');
  all.push(wide(workers[0]));
  return all.filter((x) => x !== undefined);
}
