// The versions of an answer: steps between them, a branch at any token, and two of them side by side.
import { useState } from 'preact/hooks';
import { type Conversation, parting, siblings, type Turn } from '../conversation';
import { withNames } from '../bidi';
import { chats } from './chats';

export function Versions({ conversation, turn, disabled }: { conversation: Conversation; turn: Turn; disabled: boolean }) {
  const all = siblings(conversation, turn), at = all.findIndex((t) => t.id === turn.id);
  if (all.length < 2) return null;
  const go = (step: number) => () => chats.choose(all[at + step]);
  return (
    <span class="branches" role="group" aria-label="Versions">
      <button type="button" class="small" disabled={disabled || at === 0} onClick={go(-1)} aria-label="The version before">‹</button>
      <span>{at + 1} of {all.length}</span>
      <button type="button" class="small" disabled={disabled || at === all.length - 1} onClick={go(1)} aria-label="The next version">›</button>
    </span>
  );
}

// Spaces and line ends have signs of their own where nothing else is to be seen.
const shown = (piece: string) => withNames(/\S/.test(piece) ? piece : piece.replaceAll('\n', '↵').replaceAll(' ', '␣'));

// The answer as a row of its tokens; the chosen one begins a branch.
export function Fork({ turn, busy, done }: { turn: Turn; busy: boolean; done: () => void }) {
  const ends = turn.pieces!;
  const piece = (i: number) => shown(turn.text.slice(ends[i - 1] ?? 0, ends[i]));
  return (
    <div class="fork">
      <p class="quiet">Choose a token. The answer up to it is kept, and the rest is written anew with another seed, as a version beside this one.</p>
      <div class="words" role="group" aria-label="Tokens of the answer">
        <span>{piece(0)}</span>
        {ends.slice(1).map((_, k) => (
          <button type="button" class="token" key={k} disabled={busy} aria-label={`Branch at token ${k + 2}: ${piece(k + 1)}`} onClick={() => { done(); chats.branch(turn, k + 1); }}>{piece(k + 1)}</button>
        ))}
      </div>
      <div class="row"><button type="button" onClick={done}>Cancel</button></div>
    </div>
  );
}

function Side({ title, turn, at }: { title: string; turn: Turn; at: number }) {
  const end = turn.pieces?.find((e) => e > at) ?? Math.min(at + 1, turn.text.length);
  return (
    <section class="side" aria-label={title}>
      <h4>{title}</h4>
      <div class="words"><span class="same">{withNames(turn.text.slice(0, at))}</span><mark>{withNames(turn.text.slice(at, end))}</mark>{withNames(turn.text.slice(end))}</div>
    </section>
  );
}

// This version and another one, with the first position where they part.
export function Sides({ conversation, turn }: { conversation: Conversation; turn: Turn }) {
  const all = siblings(conversation, turn), others = all.filter((t) => t.id !== turn.id && t.state !== 'writing');
  const [chosen, setChosen] = useState('');
  const other = others.find((t) => t.id === chosen) ?? others.at(-1);
  if (!other) return null;
  const { at, pieces } = parting(turn, other);
  const name = (t: Turn) => `Version ${all.indexOf(t) + 1}`;
  const same = turn.text === other.text;
  return (
    <div class="sides">
      {others.length > 1 && (
        <label>Compare with <select value={other.id} onChange={(e) => setChosen(e.currentTarget.value)}>
          {others.map((t) => <option key={t.id} value={t.id}>{name(t)}</option>)}
        </select></label>
      )}
      <p class="quiet">{same ? 'Both say the same.' : `They part at ${pieces === undefined ? '' : `token ${pieces + 1}, `}character ${at + 1}.`}</p>
      <div class="columns"><Side title={name(turn)} turn={turn} at={at} /><Side title={name(other)} turn={other} at={at} /></div>
    </div>
  );
}
