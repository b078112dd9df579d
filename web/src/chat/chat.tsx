// The chat: conversations at the left, the chosen one as a log, and where one writes.
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';
import { path } from '../conversation';
import { useExplained } from '../where/explained';
import { place, textLimit } from '../where/verdict';
import { useChats } from './use_chats';
import { chats } from './chats';
import { Composer } from './composer';
import { ConversationList } from './list';
import { Message } from './message';
import { SettingsDialog } from './settings';

export function Chat() {
  useChats();
  const [listed, setListed] = useState(false), [settings, setSettings] = useState(false), [away, setAway] = useState(false);
  const log = useRef<HTMLDivElement>(null), aside = useRef<HTMLElement>(null), lister = useRef<HTMLButtonElement>(null);
  const follow = useRef(true);
  const c = chats.conversation, turns = c ? path(c) : [], writing = chats.writing.has(chats.current);

  // Read at the start and, while the model was not loaded, around each answer.
  const known = useRef(false), model = c && chats.models.includes(c.model) ? c.model : '';
  const workers = useExplained(model, known.current ? '' : String(chats.writing.size));
  known.current = !!workers?.length;
  const last = useRef(0); // scrollTop at the last look
  const stay = () => { if (follow.current && log.current) log.current.scrollTop = log.current.scrollHeight; };
  useLayoutEffect(() => { follow.current = true; }, [chats.current, turns.length]);
  useLayoutEffect(stay);
  // Also when an answer grows without a change here: its blocks are formatted in later frames.
  useLayoutEffect(() => {
    const el = log.current;
    if (!el) return;
    const watch = new ResizeObserver(stay);
    watch.observe(el);
    watch.observe(el.firstElementChild!);
    return () => watch.disconnect();
  }, [!c]);
  useEffect(() => { if (listed) aside.current!.querySelector('button')?.focus(); }, [listed]);
  if (!c) return <main class="chat"><p class="quiet opening">One moment …</p></main>;

  const scrolled = () => {
    const el = log.current;
    if (!el) return; // the event of a log that is gone by now
    const near = el.scrollHeight - el.scrollTop - el.clientHeight < 60, up = el.scrollTop < last.current;
    last.current = el.scrollTop;
    // Only the user goes up. A text that grows leaves the end below the view as well, until `stay`.
    if (near || up) follow.current = near;
    setAway(!near && !follow.current);
  };
  const toEnd = () => { follow.current = true; log.current!.scrollTop = log.current!.scrollHeight; setAway(false); };

  return (
    <main class="chat">
      <aside ref={aside} class={listed ? 'list open' : 'list'} aria-label="Conversations" id="conversations"
        onKeyDown={(e) => { if (e.key === 'Escape' && listed) { e.stopPropagation(); setListed(false); lister.current!.focus(); } }}>
        <ConversationList opened={() => setListed(false)} />
      </aside>
      <section class="talk" aria-label="Conversation">
        <div class="talk-bar">
          <button type="button" ref={lister} class="only-narrow" aria-expanded={listed} aria-controls="conversations" onClick={() => setListed(!listed)}>Conversations</button>
          <label class="model">Model <select value={c.model} onChange={(e) => chats.setModel(e.currentTarget.value)}>
            {!chats.models.includes(c.model) && <option value={c.model}>{c.model || 'none'}</option>}
            {chats.models.map((m) => <option key={m} value={m} selected={m === c.model}>{m}</option>)}
          </select></label>
          {workers && workers.length > 0 && <a class="quiet on" href="#/where" title={`${model} runs on ${place(workers)}. More: What runs where`}>on {place(workers, false)}</a>}
          <button type="button" onClick={() => setSettings(true)}>Settings</button>
        </div>
        <div class="log" ref={log} onScroll={scrolled} tabIndex={0} role="region" aria-label="What was said">
          <div class="log-inside">
            {chats.problem && <p class="wrong" role="alert">{chats.problem} <button type="button" class="small" onClick={() => void chats.loadModels()}>Try again</button></p>}
            {!turns.length && <div class="opening"><h2>Ask something.</h2><p class="quiet">What you write goes to the server at {location.host}, and nowhere else.</p>{workers && workers.length > 0 && <p class="quiet">{model} runs there on {place(workers)}.</p>}</div>}
            {turns.map((t, i) => <Message key={t.id} conversation={c} turn={t} after={turns.slice(i + 1)} busy={writing} limit={workers && t.model === model && i === turns.length - 1 ? textLimit(workers) : 0} />)}
          </div>
        </div>
        {away && <button type="button" class="to-end" onClick={toEnd}>To the end</button>}
        <Composer writing={writing} key={c.id} />
      </section>
      {settings && <SettingsDialog close={() => setSettings(false)} />}
      <p class="unseen" role="status" aria-live="polite">{chats.said}</p>
    </main>
  );
}
