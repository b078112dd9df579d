// A text with Markdown, as elements that are made once for each block.
import { memo } from './memo';
import { useLayoutEffect, useRef } from 'preact/hooks';
import { blocks, formatted, kMostFormatted, plain } from './markdown';

export async function copyText(text: string) {
  try { await navigator.clipboard.writeText(text); return true; } catch { /* not over plain HTTP from elsewhere */ }
  const area = document.createElement('textarea');
  area.value = text;
  area.className = 'unseen';
  document.body.append(area);
  area.select();
  const done = document.execCommand('copy');
  area.remove();
  return done;
}

function copyButton(code: string): HTMLElement {
  const button = document.createElement('button');
  button.type = 'button';
  button.className = 'small copy-code';
  button.textContent = 'Copy';
  button.setAttribute('aria-label', 'Copy this code');
  button.addEventListener('click', async () => {
    button.textContent = (await copyText(code)) ? 'Copied' : 'Not copied';
    setTimeout(() => { button.textContent = 'Copy'; }, 1500);
  });
  return button;
}

// ---- a frame formats for so long at most: what is left is shown as it is until its turn comes

const kFrameMs = 12;
const later = new Map<HTMLElement, string>();
let spent = 0, frame = 0;

function format(el: HTMLElement, text: string) {
  frame ||= requestAnimationFrame(nextFrame);
  if (spent > kFrameMs) {
    el.replaceChildren(plain(text));
    later.set(el, text);
    return;
  }
  const start = performance.now();
  later.delete(el);
  el.replaceChildren(formatted(text, copyButton));
  spent += performance.now() - start;
}

function nextFrame() {
  frame = spent = 0;
  for (const [el, text] of later) {
    if (spent > kFrameMs) break;
    if (el.isConnected) format(el, text);
    else later.delete(el);
  }
}

const Block = memo(({ text, raw }: { text: string; raw?: boolean }) => {
  const at = useRef<HTMLDivElement>(null);
  useLayoutEffect(() => { raw ? at.current!.replaceChildren(plain(text)) : format(at.current!, text); }, [text, raw]);
  return <div class="block" ref={at} />;
});

const kPiece = 16_000;

export function Rich({ text }: { text: string }) {
  const rest: string[] = [];
  for (let i = kMostFormatted; i < text.length; i += kPiece) rest.push(text.slice(i, i + kPiece));
  return (
    <div class="rich">
      {blocks(text.slice(0, kMostFormatted)).map((b, i) => <Block key={i} text={b} />)}
      {rest.length > 0 && <p class="quiet">The rest of this long text is shown as it is.</p>}
      {rest.map((b, i) => <Block key={'rest' + i} text={b} raw />)}
    </div>
  );
}
