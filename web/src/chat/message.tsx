// One turn of a conversation, with what can be done with it.
import { useRef, useState } from 'preact/hooks';
import { branches, type Conversation, siblings, type Turn } from '../conversation';
import { withNames } from '../bidi';
import { copyText, Rich } from '../rich';
import { Fork, Sides, Versions } from './branches';
import { chats } from './chats';

const kRate = (t: Turn) => (t.tokens && t.tokens > 1 && t.writingMs ? ((t.tokens - 1) / t.writingMs) * 1000 : 0);

function CopyButton({ text }: { text: string }) {
  const [label, setLabel] = useState('Copy');
  const copy = async () => {
    setLabel((await copyText(text)) ? 'Copied' : 'Not copied');
    setTimeout(() => setLabel('Copy'), 1500);
  };
  return <button type="button" class="small" onClick={copy}>{label}</button>;
}

function Editor({ turn, done }: { turn: Turn; done: () => void }) {
  const area = useRef<HTMLTextAreaElement>(null);
  const send = () => { const text = area.current!.value; done(); if (text.trim() || turn.attachments) chats.edit(turn, text); };
  return (
    <div class="editor">
      <textarea ref={(el) => { if (el && !area.current) { area.current = el; el.focus(); } }} aria-label="Your changed message" rows={3} defaultValue={turn.text}
        onKeyDown={(e) => {
          if (e.key === 'Escape') { e.stopPropagation(); done(); }
          if (e.key === 'Enter' && !e.shiftKey && !e.isComposing) { e.preventDefault(); send(); }
        }} />
      <p class="quiet">The message as it was stays, as a version beside this one.</p>
      <div class="row"><button type="button" class="strong" onClick={send}>Send changed</button><button type="button" onClick={done}>Cancel</button></div>
    </div>
  );
}

function Calls({ turn, after }: { turn: Turn; after: Turn[] }) {
  return <>{turn.calls!.map((call) => {
    const result = after.find((t) => t.role === 'tool' && t.callId === call.id);
    const waits = !result && turn.state !== 'writing' && after.every((t) => t.role === 'tool');
    return (
      <details class="fold" key={call.id} open={waits}>
        <summary>Tool call: {withNames(call.name)}</summary>
        <pre tabIndex={0}>{withNames(prettyJson(call.arguments))}</pre>
        {waits && <Result turn={turn} id={call.id} />}
      </details>
    );
  })}</>;
}

function Result({ turn, id }: { turn: Turn; id: string }) {
  const area = useRef<HTMLTextAreaElement>(null);
  return (
    <form class="editor" onSubmit={(e) => { e.preventDefault(); chats.giveResult(turn, id, area.current!.value); }}>
      <label>What the tool says <textarea ref={area} rows={2} /></label>
      <div class="row"><button class="strong">Give to the model</button></div>
    </form>
  );
}

const prettyJson = (text: string) => { try { return JSON.stringify(JSON.parse(text), null, 2); } catch { return text; } };

const kStates: Partial<Record<string, string>> = {
  stopped: 'Stopped by you.', cut: 'Cut off: the page was left while this was written.',
};

// `limit`: tokens per second that the machine allows; 0: not known.
function Facts({ turn, limit }: { turn: Turn; limit: number }) {
  const rate = kRate(turn), words: string[] = [];
  if (turn.tokens !== undefined) words.push(`${turn.tokens} token${turn.tokens === 1 ? '' : 's'}`);
  // Accepted drafts can make it faster than the memory allows single steps.
  const share = limit && rate <= limit ? ` (${Math.round((100 * rate) / limit)} % of this machine’s limit)` : '';
  if (rate) words.push(`${rate.toFixed(rate < 10 ? 1 : 0)} tokens/s${share}`);
  if (turn.firstMs) words.push(`first token after ${turn.firstMs < 1000 ? Math.round(turn.firstMs) + ' ms' : (turn.firstMs / 1000).toFixed(1) + ' s'}`);
  return <span class="facts">{words.join(' · ')}</span>;
}

// The limit that ended the answer: of the settings or of the context.
function limitOf({ limit, tokens }: Turn): string {
  return limit !== undefined && (tokens === undefined || tokens >= limit)
    ? `Cut off at ${limit.toLocaleString('en')} tokens: “Max tokens” in the settings sets this limit.`
    : 'Cut off: the model’s context is full. A new conversation has room again; “gimbal serve --ctx” sets the size.';
}

export function Message({ conversation, turn, after, busy, limit }: { conversation: Conversation; turn: Turn; after: Turn[]; busy: boolean; limit: number }) {
  const [editing, setEditing] = useState(false);
  const [open, setOpen] = useState<'' | 'fork' | 'sides'>('');
  const toggle = (what: 'fork' | 'sides') => () => setOpen(open === what ? '' : what);
  const answer = turn.role === 'assistant', writing = turn.state === 'writing';
  const who = answer ? withNames(turn.model ?? 'model') : turn.role === 'tool' ? 'Tool' : 'You';
  return (
    <article class={`turn ${turn.role}`} aria-label={answer ? `Answer of ${who}` : who} aria-busy={writing}>
      <h3 class="who" title={who}>{who}</h3>
      <div class="said">
        {turn.reasoning && (
          <details class="fold">
            <summary>{writing && !turn.text ? 'Reasoning, being written' : 'Reasoning'}</summary>
            <Rich text={turn.reasoning} />
          </details>
        )}
        {editing ? <Editor turn={turn} done={() => setEditing(false)} />
          : turn.role === 'tool' ? <details class="fold"><summary>Result</summary><pre tabIndex={0}>{withNames(turn.text)}</pre></details>
          : answer ? <Rich text={turn.text} /> : <div class="words">{withNames(turn.text)}</div>}
        {turn.attachments?.map((f, i) => f.image ? <img class="picture" key={i} src={f.image} alt={f.name} title={withNames(f.name)} /> : (
          <details class="fold" key={i}><summary>{withNames(f.name)} ({f.text.length.toLocaleString('en')} characters)</summary><pre tabIndex={0}>{withNames(f.text.slice(0, 20_000))}</pre></details>
        ))}
        {turn.calls && <Calls turn={turn} after={after} />}
        {writing && <span class="caret" aria-hidden="true" />}
        {turn.error && <p class="wrong">{withNames(turn.error)}</p>}
        {turn.state && kStates[turn.state] && <p class="quiet">{kStates[turn.state]}</p>}
        {answer && turn.finish === 'length' && <p class="quiet">{limitOf(turn)}</p>}
        {!editing && !writing && (
          <div class="tools">
            <CopyButton text={turn.text} />
            {turn.role === 'user' && <button type="button" class="small" disabled={busy} onClick={() => setEditing(true)}>Edit</button>}
            {answer && <button type="button" class="small" disabled={busy} onClick={() => chats.again(turn)}>Try again</button>}
            {branches(turn) && <button type="button" class="small" disabled={busy} aria-expanded={open === 'fork'} onClick={toggle('fork')}>Branch</button>}
            <Versions conversation={conversation} turn={turn} disabled={busy} />
            {answer && siblings(conversation, turn).length > 1 && <button type="button" class="small" aria-expanded={open === 'sides'} onClick={toggle('sides')}>Compare</button>}
            {answer && turn.answer && turn.state === 'done' && <a class="small" href={`#/where/${encodeURIComponent(turn.answer)}`}>What computed this</a>}
            {answer && <Facts turn={turn} limit={limit} />}
          </div>
        )}
        {!writing && open === 'fork' && branches(turn) && <Fork turn={turn} busy={busy} done={() => setOpen('')} />}
        {!writing && open === 'sides' && <Sides conversation={conversation} turn={turn} />}
      </div>
    </article>
  );
}
