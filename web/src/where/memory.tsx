// Memory: what was planned, by kind, in the room that there is; and the pages of the KV cache as they are held now.
import { bytes, count, type Metrics, pages, value } from './numbers';
import type { Explained, Memory } from './plan';

const kKinds = [
  ['weights', 'Weights', 'what the model learned; each step reads it once', '--w1'],
  ['kv_cache', 'KV cache', 'the context of all texts, in pages', '--w2'],
  ['activations', 'Activations', 'numbers between two ops of a step', '--w3'],
  ['step', 'Step data', 'tokens, positions and page lists of a step', '--w4'],
  ['output', 'Output', 'logits: how likely each next token is', '--w5'],
  ['scratch', 'Scratch', 'working memory of single kernels', '--w6'],
] as const;

function Device({ m }: { m: Memory }) {
  const share = (n: number) => `${(100 * n) / m.total}%`;
  return (
    <section class="card" aria-label={`Memory of ${m.device}`}>
      <h3>{m.device} <small>{m.name}</small></h3>
      <p>{bytes(m.total)} planned before loading, and nothing more is allocated while it runs. {m.memory_total > 0 && <>The device has {bytes(m.memory_total)}: </>}
        {bytes(m.free)} were free for the plan.</p>
      {m.memory_total > 0 && (
        <div class="gauge" role="img" aria-label={`${bytes(m.total)} of ${bytes(m.memory_total)}`}>
          <span style={{ width: `${Math.max(0.4, (100 * m.total) / m.memory_total)}%`, background: 'var(--w1)' }} />
        </div>
      )}
      <div class="stack" role="img" aria-label="The plan by kind of memory; the table has the numbers">
        {kKinds.map(([kind, , , colour]) => m[kind] > 0 && <span key={kind} style={{ width: share(m[kind]), background: `var(${colour})` }} />)}
      </div>
      <table class="plain">
        <tbody>{kKinds.map(([kind, name, word, colour]) => m[kind] > 0 && (
          <tr key={kind}><th scope="row"><i style={{ background: `var(${colour})` }} />{name}</th><td class="number">{bytes(m[kind])}</td><td><small>{word}</small></td></tr>
        ))}</tbody>
      </table>
    </section>
  );
}

const kCells = 240;

// Each cell stands for the same number of pages.
function Pages({ m, loaded }: { m: Metrics; loaded: number }) {
  const shared = value(m, 'kv_pages_shared'), running = pages(m, 'running') - shared, kept = pages(m, 'kept'), free = pages(m, 'free');
  const all = shared + running + kept + free, each = Math.max(1, Math.ceil(all / kCells));
  if (!all) return null;
  const kinds = [['shared', shared, '--w3', 'in use by several requests that begin alike: computed once'], ['running', running, '--w2', 'in use by one request'],
    ['kept', kept, '--w6', 'of earlier requests, for the next one that begins alike; freed when needed'], ['free', free, '--free', 'not in use']] as const;
  const cells: string[] = [];
  let sum = 0;
  for (const [, n, colour] of kinds) { sum += n; while (cells.length < Math.round(sum / each)) cells.push(colour); }
  return (
    <section class="card" aria-label="Pages of the KV cache">
      <h3>Pages of the KV cache <small>{each === 1 ? 'each square is one page' : `each square stands for ${each} pages`} of 64 tokens{loaded > 1 && `; of the ${loaded} loaded models together`}</small></h3>
      <div class="pages" role="img" aria-label={kinds.map(([name, n]) => `${name} ${n}`).join(', ')}>{cells.map((c, i) => <span key={i} style={{ background: `var(${c})` }} />)}</div>
      <table class="plain">
        <tbody>{kinds.map(([name, n, colour, word]) => <tr key={name}><th scope="row"><i style={{ background: `var(${colour})` }} />{name}</th><td class="number">{count(n)}</td><td><small>{word}</small></td></tr>)}</tbody>
      </table>
      <p><b>{count(value(m, 'prompt_tokens_shared_total'))}</b> prompt tokens came from this cache so far, because an earlier request began alike.</p>
    </section>
  );
}

// The prefix store on disk, if the server has one.
function Stored({ m }: { m: Metrics }) {
  if (!m.has('gimbal_prefix_store_bytes')) return null;
  const of = (name: string) => value(m, `prefix_store_${name}`), seconds = of('saved_seconds_total');
  const rows = [['texts that began with stored pages', count(of('hits_total'))], ['texts that found none', count(of('misses_total'))],
    ['tokens that were read and not computed', count(of('tokens_total'))], ['read', bytes(of('read_bytes_total'))], ['written', bytes(of('written_bytes_total'))],
    ['damaged pages, deleted and computed again', count(of('damaged_pages_total'))]] as const;
  return (
    <section class="card" aria-label="Prefix store">
      <h3>Prefix store <small>{bytes(of('bytes'))} in the folder</small></h3>
      <table class="plain"><tbody>{rows.map(([word, n]) => <tr key={word}><th scope="row">{word}</th><td class="number">{n}</td></tr>)}</tbody></table>
      <p>It saved <b>{seconds < 10 ? seconds.toFixed(2) : count(seconds)} seconds</b> of computing so far.</p>
    </section>
  );
}

export function MemoryView({ workers, metrics, loaded }: { workers: Explained[]; metrics: Metrics | undefined; loaded: number }) {
  return <div class="cards">{workers.map((w, i) => w.devices.map((d) => <Device key={i + d.device} m={d} />))}{metrics && <Pages m={metrics} loaded={loaded} />}{metrics && <Stored m={metrics} />}</div>;
}
