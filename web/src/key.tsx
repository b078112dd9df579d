// Asks for the API key when the server wants one. It is kept for this tab only.
import { useEffect, useRef } from 'preact/hooks';

export function KeyDialog({ wrong, given }: { wrong: boolean; given: (key: string) => void }) {
  const dialog = useRef<HTMLDialogElement>(null), field = useRef<HTMLInputElement>(null);
  useEffect(() => dialog.current!.showModal(), []);
  return (
    <dialog ref={dialog} class="key" aria-labelledby="key-title" onClose={() => given('')}>
      <form onSubmit={(e) => { e.preventDefault(); const key = field.current!.value.trim(); if (key) given(key); }}>
        <h2 id="key-title">This server wants an API key</h2>
        {wrong && <p class="wrong" role="alert">The key is not right.</p>}
        <p>It is the one that <code>gimbal serve</code> was started with, or showed when it started. This tab keeps it until it is closed.</p>
        <label>API key <input ref={field} type="password" autocomplete="off" required /></label>
        <div class="row"><button class="strong">Go on</button><button type="button" onClick={() => dialog.current!.close()}>Not now</button></div>
      </form>
    </dialog>
  );
}
