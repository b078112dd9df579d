// The server's metrics, and what follows from two looks at them.

export type Metrics = Map<string, number>; // by name, with labels as they are written: gimbal_kv_pages{state="free"}

export function parse(text: string): Metrics {
  const all: Metrics = new Map();
  for (const line of text.split('\n')) {
    const at = line.lastIndexOf(' ');
    if (at > 0 && !line.startsWith('#')) all.set(line.slice(0, at), Number(line.slice(at + 1)));
  }
  return all;
}

export const value = (m: Metrics, name: string) => m.get('gimbal_' + name) ?? 0;
export const pages = (m: Metrics, state: string) => value(m, `kv_pages{state="${state}"}`);

// A moment of the last minutes.
export interface Sample { at: number; generated: number; prompt: number; steps: number; ofModel: number; rowsPerStep: number | null; running: number; waiting: number; model: string; share: number | null }

// The change between two readings. `limit`: steps per second that the memory's speed allows `model`; 0: not known. All but its share are
// of all models together.
export function sample(before: Metrics, now: Metrics, seconds: number, at: number, model: string, limit: number): Sample {
  const rate = (name: string) => Math.max(0, value(now, name) - value(before, name)) / seconds;
  const steps = rate('steps_total'), ofModel = rate(`model_steps_total{model=${JSON.stringify(model)}}`);
  return {
    at, steps, ofModel,
    generated: rate('tokens_generated_total'), prompt: rate('prompt_tokens_total'),
    rowsPerStep: steps > 0 ? rate('rows_total') / steps : null,
    running: value(now, 'requests_running'), waiting: value(now, 'requests_waiting'),
    model, share: limit > 0 ? (100 * ofModel) / limit : null,
  };
}

// The bound of the histogram's class in which the middle one of all lies; undefined: there are none.
export function median(m: Metrics, name: string): string | undefined {
  const total = value(m, name + '_count');
  if (!total) return undefined;
  for (const [key, count] of m)
    if (key.startsWith(`gimbal_${name}_bucket`) && count * 2 >= total) {
      const bound = key.slice(key.indexOf('"') + 1, key.lastIndexOf('"'));
      return bound === '+Inf' ? 'more than a minute' : `at most ${Number(bound) < 1 ? Math.round(Number(bound) * 1000) + ' ms' : bound + ' s'}`;
    }
  return undefined;
}

const kLately = 10; // samples with work

// `perSecond`: tokens of one text; 0: not seen. `steps`: of the model; 0: not seen. `alone`: each step computed one text.
export interface Speed { perSecond: number; steps: number; alone: boolean }

// The speed of a text of this model: by its latest steps, else by all texts of the server so far if this is its `only` model. A
// step gives each running text one token or, with accepted drafts, several.
export function speedSeen(m: Metrics, samples: Sample[], model: string, workers: number, only: boolean): Speed {
  // The first and the last second with work have less of it than the others.
  const busy = samples.filter((s) => s.model === model && s.ofModel > 0).slice(-kLately).sort((a, b) => a.ofModel - b.ofModel);
  const steps = busy.length > 2 ? busy[Math.floor(busy.length / 2)].ofModel : 0;
  const tokens = value(m, 'time_between_tokens_seconds_count'), seconds = value(m, 'time_between_tokens_seconds_sum');
  const usual = only && seconds > 0 ? tokens / seconds : 0, drafts = value(m, 'draft_tokens_accepted_total') > 0;
  return steps ? { perSecond: steps / workers, steps, alone: busy.every((s) => (s.rowsPerStep ?? 0) < 1.5) } : { perSecond: usual, steps: drafts ? 0 : usual, alone: false };
}

export function bytes(n: number): string {
  const units = ['bytes', 'kB', 'MB', 'GB', 'TB'];
  let i = 0;
  while (n >= 1000 && i < 4) { n /= 1000; i++; }
  return `${i && n < 100 ? n.toFixed(1) : Math.round(n)} ${units[i]}`;
}

export const count = (n: number) => Math.round(n).toLocaleString('en');
