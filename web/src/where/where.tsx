// What runs where: the server's models, memory, kernels and speed. Reads them once a second while the view is visible.
import { useEffect, useRef, useState } from 'preact/hooks';
import { chat, getText } from '../api';
import { chats } from '../chat/chats';
import { useChats } from '../chat/use_chats';
import { useBackends } from './backends';
import { Devices } from './devices';
import { useExplained } from './explained';
import { Front } from './front';
import { MemoryView } from './memory';
import { count, median, type Metrics, parse, type Sample, sample, speedSeen, value } from './numbers';
import { Ops } from './ops';
import { cacheFormat, kSmall, stepLimit } from './plan';
import { kShown, Plot } from './plot';
import { ReceiptView } from './receipt';

const kLookMs = 1000;

// `of`: the model that is shown, and the steps per second that the memory allows it; 0: not known.
function useMetrics(of: { current: { model: string; limit: number } }) {
  const [metrics, setMetrics] = useState<Metrics>(), [samples, setSamples] = useState<Sample[]>([]), [problem, setProblem] = useState('');
  const last = useRef<{ metrics: Metrics; at: number } | undefined>(undefined);
  useEffect(() => {
    let timer = 0, ended = false;
    const look = async () => {
      if (!document.hidden)
        try {
          const now = parse(await getText('/metrics')), at = performance.now();
          if (ended) return;
          const before = last.current;
          last.current = { metrics: now, at };
          setMetrics(now);
          setProblem('');
          if (before) setSamples((all) => [...all.filter((s) => at - s.at < kShown * 1000), sample(before.metrics, now, (at - before.at) / 1000, at, of.current.model, of.current.limit)]);
        } catch (e) { if (!ended) setProblem((e as Error).message); }
      if (!ended) timer = window.setTimeout(look, kLookMs);
    };
    void look();
    return () => { ended = true; clearTimeout(timer); };
  }, []);
  return { metrics, samples, problem };
}

// They begin alike for more than a page, so that one can see pages that are shared.
const kBeginning = 'Once upon a time, there was a small house near a big, green park. In the house lived a girl named Lily, her mom and her dog Max. '
  + 'Every morning they went to the park to play with a red ball. One day it rained, and they had to stay at home. Then ';
const kStories = ['Lily', 'Max', 'her mom', 'a friend'].map((who) => kBeginning + who);

function Load({ model }: { model: string }) {
  const [left, setLeft] = useState(0);
  const give = () => {
    setLeft((n) => n + kStories.length);
    for (const content of kStories)
      void chat({ model, messages: [{ role: 'user', content }], max_tokens: 400 }, new AbortController().signal, () => {}).catch(() => {}).finally(() => setLeft((n) => n - 1));
  };
  return <button type="button" onClick={give} disabled={!model}>{left ? `${left} texts are being written` : 'Try it: write four texts'}</button>;
}

const kNothing = 'Nothing was computed in this time.';

export function Where({ receipt }: { receipt: string }) {
  useChats();
  const [wanted, setWanted] = useState('');
  const model = wanted || chats.conversation?.model || chats.models[0] || '';
  const of = useRef({ model, limit: 0 });
  const { metrics, samples, problem } = useMetrics(of), backends = useBackends();
  const now = samples.at(-1), m: Metrics = metrics ?? new Map();
  const isLoaded = m.has(`gimbal_memory_bytes{model=${JSON.stringify(model)}}`);
  const workers = useExplained(metrics && chats.models.includes(model) ? model : '', [...m].filter(([name]) => /^gimbal_(memory_bytes|worker_restarts|devices_lost)/.test(name)).join(), isLoaded ? now?.at : 0);
  const limit = stepLimit(workers ?? []), loaded = [...m.keys()].filter((name) => name.startsWith('gimbal_memory_bytes')).length;
  of.current = { model, limit };
  const drafted = value(m, 'draft_tokens_total'), accepted = value(m, 'draft_tokens_accepted_total');
  const first = median(m, 'time_to_first_token_seconds'), between = median(m, 'time_between_tokens_seconds');
  useEffect(() => { if (receipt) document.getElementById('receipt')?.scrollIntoView(); }, [receipt]);

  return (
    <main class="where" tabIndex={-1}>
      <div class="where-inside">
        <div class="row">
          <h2>What runs where</h2>
          <span class={now && now.steps > 0 ? 'beat' : 'beat still'} aria-hidden="true" />
          <span class="quiet" role="status">{problem ? '' : now && now.steps > 0 ? 'computing' : 'waiting for work'}</span>
          <span class="spring" />
          {chats.models.length > 1 && <label>Model <select value={model} onChange={(e) => setWanted(e.currentTarget.value)}>{chats.models.map((id) => <option key={id} value={id} selected={id === model}>{id}</option>)}</select></label>}
          <Load model={model} />
        </div>
        {(problem || chats.problem) && <p class="wrong" role="alert">{problem || chats.problem}</p>}

        {workers && workers.length > 0 && <Front model={model} workers={workers} found={backends.found} speed={speedSeen(m, samples, model, workers.length, chats.models.length === 1)} />}

        <div class="cards plots">
          <Plot title="Tokens per second" now={count(now?.generated ?? 0)} word="of all answers together, and of the prompts that are read" nothing={kNothing} samples={samples}
            lines={[{ name: 'generated', colour: '--w1', of: (s) => s.generated }, { name: 'prompts', colour: '--w2', of: (s) => s.prompt }]} />
          {limit > 0 && <Plot title="Memory bandwidth used" now={now?.share == null || now.model !== model ? '–' : `${Math.round(now.share)} %`} nothing={kNothing} samples={samples} lines={[{ name: 'share', colour: '--w3', of: (s) => (s.model === model ? s.share : null) }]}
            word={`each step reads all weights${loaded > 1 ? ' of this model' : ''} once: the memory allows ${count(limit)} steps per second${(workers?.[0]?.weight_bytes_per_token ?? 0) < kSmall ? '; weights so small stay in the processor’s cache, so this says little' : ''}`} />}
          <Plot title="Batch size" now={now?.rowsPerStep ? now.rowsPerStep.toFixed(1) : '0'} word="tokens per step: answers that are computed together share one reading of the weights" nothing={kNothing} samples={samples} lines={[{ name: 'batch', colour: '--w4', of: (s) => s.rowsPerStep }]} />
          <Plot title="Requests" now={`${now?.running ?? 0} running, ${now?.waiting ?? 0} in queue`} word="a queued request begins as soon as there is memory for it" nothing="No request in this time." samples={samples}
            lines={[{ name: 'running', colour: '--w1', of: (s) => s.running }, { name: 'in queue', colour: '--w5', of: (s) => s.waiting }]} />
        </div>

        <div class="cards facts-row">
          <p class="card">{first ? <><b>{first}</b> to the first token (from the request), for half of all answers so far</> : 'Time to the first token: no answer so far'}</p>
          <p class="card">{between ? <><b>{between}</b> between tokens of a text, for half of them</> : 'Time between tokens: no answer so far'}</p>
          <p class="card">{drafted ? <><b>{Math.round((100 * accepted) / drafted)} %</b> of the drafts were accepted: {count(accepted)} of {count(drafted)} tokens guessed ahead{accepted > 0 && ', which saved steps'}</>
            : 'Speculative decoding: no token was drafted so far'}</p>
          <p class="card"><b>{count(value(m, 'preemptions_total'))}</b> preemptions (a text gave up its place for a while); <b>{count(value(m, 'worker_restarts_total') + value(m, 'devices_lost_total'))}</b> workers or devices lost and replaced</p>
        </div>

        {workers && workers.length > 0 ? (
          <>
            <p>{model}: {workers[0].architecture}, {workers[0].layers} layers, context {count(workers[0].context)} tokens, KV cache in {cacheFormat(workers[0])}; {workers.flatMap((w) => w.placement).map((p, i) => <span key={i}>{i > 0 && '; '}{p.contents} on <b>{p.device}</b>{p.reason && ` (${p.reason})`}</span>)}.</p>
            <MemoryView workers={workers} metrics={metrics} loaded={loaded} />
            {workers.map((w, i) => <Ops key={model + i} worker={w} />)}
          </>
        ) : <p class="quiet">{workers ? 'This model is not loaded: the first request loads it. Then its device, memory and kernels are shown here.' : problem || chats.problem ? '' : 'Reading the plan of the model …'}</p>}
        <ReceiptView id={receipt} />
        <Devices {...backends} />
      </div>
    </main>
  );
}
