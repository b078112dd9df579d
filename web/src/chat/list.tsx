// The conversations of this browser.
import { useRef, useState } from 'preact/hooks';
import { type Conversation, toFile } from '../conversation';
import { withNames } from '../bidi';
import { keeps } from '../store';
import { chats } from './chats';

function download(name: string, text: string) {
  const a = document.createElement('a');
  a.href = URL.createObjectURL(new Blob([text], { type: 'application/json' }));
  a.download = name;
  a.click();
  setTimeout(() => URL.revokeObjectURL(a.href), 10_000);
}

export function ConversationList({ opened }: { opened: () => void }) {
  const chooser = useRef<HTMLInputElement>(null);
  const [problem, setProblem] = useState(''), [doubted, setDoubted] = useState('');
  const used = chats.all.filter((c) => Object.keys(c.turns).length);
  const read = async (file: File | undefined) => {
    if (!file) return;
    setProblem('');
    try { chats.import(await file.text()); } catch (e) { setProblem((e as Error).message); }
  };
  const entry = (c: Conversation) => (
    <li key={c.id}>
      <button type="button" class="title" aria-current={c.id === chats.current ? 'true' : undefined} onClick={() => { chats.open(c.id); opened(); }}>{withNames(c.title)}</button>
      {doubted === c.id
        ? <button type="button" class="small wrong" onClick={() => void chats.remove(c.id)} onBlur={() => setDoubted('')}>Delete?</button>
        : <button type="button" class="small" aria-label={`Delete “${withNames(c.title)}”`} onClick={() => setDoubted(c.id)}>×</button>}
    </li>
  );
  return (
    <>
      <div class="row"><button type="button" class="strong" onClick={() => { chats.create(); opened(); setTimeout(() => document.getElementById('message')?.focus()); }}>New conversation</button></div>
      <ul class="conversations">{used.map(entry)}</ul>
      <div class="row">
        <button type="button" class="small" disabled={!used.length} onClick={() => download('gimbal-conversations.json', toFile(used))}>Export all</button>
        <button type="button" class="small" onClick={() => chooser.current!.click()}>Import</button>
        <input type="file" accept=".json,application/json" hidden ref={chooser} aria-label="A file of conversations" onChange={(e) => { void read(e.currentTarget.files?.[0]); e.currentTarget.value = ''; }} />
      </div>
      {problem && <p class="wrong" role="alert">{problem}</p>}
      <p class="quiet">{keeps ? 'Conversations stay in this browser.' : 'This browser keeps nothing: conversations end with this page.'}</p>
    </>
  );
}
