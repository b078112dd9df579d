// Where a message is written: Enter sends, Shift+Enter begins a line, Escape stops an answer.
import { useLayoutEffect, useRef, useState } from 'preact/hooks';
import { withNames } from '../bidi';
import type { Attachment } from '../conversation';
import { chats } from './chats';
import { asPicture, isPicture } from './pictures';

const kMostFile = 1_000_000;

async function asText(file: File): Promise<Attachment> {
  if (file.size > kMostFile) throw new Error(`${file.name} is larger than 1 MB.`);
  try {
    const text = new TextDecoder('utf-8', { fatal: true }).decode(await file.arrayBuffer());
    if (text.includes('\0')) throw new Error();
    return { name: file.name, text };
  } catch { throw new Error(`${file.name} is no text (UTF-8): only texts and pictures can be attached.`); }
}

export function Composer({ writing }: { writing: boolean }) {
  const area = useRef<HTMLTextAreaElement>(null), chooser = useRef<HTMLInputElement>(null);
  const [files, setFiles] = useState<Attachment[]>([]), [problem, setProblem] = useState('');

  const grow = () => {
    const el = area.current!;
    el.style.height = 'auto';
    el.style.height = Math.min(el.scrollHeight + 2, innerHeight * 0.4) + 'px';
  };
  const attach = async (list: Iterable<File>) => {
    setProblem('');
    for (const file of list) {
      try { const read = await (isPicture(file) ? asPicture(file) : asText(file)); setFiles((all) => [...all, read]); }
      catch (e) { setProblem((e as Error).message); }
    }
  };
  const send = () => {
    const text = area.current!.value;
    if (writing || (!text.trim() && !files.length)) return;
    chats.send(text, files);
    area.current!.value = '';
    setFiles([]);
    grow();
  };
  useLayoutEffect(() => {
    const stop = (e: KeyboardEvent) => { if (e.key === 'Escape' && !document.querySelector('dialog[open]')) chats.stop(); };
    addEventListener('keydown', stop);
    return () => removeEventListener('keydown', stop);
  }, []);

  return (
    <form class="composer" onSubmit={(e) => { e.preventDefault(); send(); }}
      onDragOver={(e) => e.preventDefault()} onDrop={(e) => { e.preventDefault(); void attach(e.dataTransfer?.files ?? []); }}>
      {files.length > 0 && (
        <ul class="files" aria-label="Attached files">
          {files.map((f, i) => (
            <li key={i}>{f.image && <img src={f.image} alt="" />}{withNames(f.name)} <button type="button" class="small" aria-label={`Take ${f.name} away`} onClick={() => setFiles(files.filter((_, k) => k !== i))}>×</button></li>
          ))}
        </ul>
      )}
      {problem && <p class="wrong" role="alert">{problem}</p>}
      <label class="unseen" for="message">Your message</label>
      <textarea id="message" ref={area} rows={1} placeholder="Write a message" onInput={grow}
        onPaste={(e) => { const pasted = e.clipboardData?.files; if (pasted?.length) { e.preventDefault(); void attach(pasted); } }}
        onKeyDown={(e) => { if (e.key === 'Enter' && !e.shiftKey && !e.isComposing) { e.preventDefault(); send(); } }} />
      <div class="row">
        <button type="button" onClick={() => chooser.current!.click()}>Attach file</button>
        <input type="file" multiple hidden ref={chooser} onChange={(e) => { void attach([...(e.currentTarget.files ?? [])]); e.currentTarget.value = ''; }} />
        <span class="hint">Enter: send, Shift+Enter: new line, Esc: stop</span>
        {writing ? <button type="button" class="strong" onClick={() => chats.stop()}>Stop</button> : <button class="strong">Send</button>}
      </div>
    </form>
  );
}
