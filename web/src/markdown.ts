// From the Markdown of an answer to elements. The text is hostile: HTML in it is shown as text, what comes out of the
// Markdown library is sanitized, images become links (a picture's address could carry words away), and large or deeply
// nested texts are shown as they are, so that none freezes the page.
import DOMPurify from 'dompurify';
import { Marked, type Token, type Tokens } from 'marked';
import temml from 'temml';
import { nameTurning } from './bidi';
import { highlighted } from './highlight';

export const kMostFormatted = 200_000; // characters of a text; the rest of it is shown as it is
const kMostBlock = 12_000, kMostDepth = 16, kMostFormula = 2_000, kMostLine = 4_000;

// ---- blocks: each is formatted alone, so that a text that grows has only its last one formatted anew. Small ones that follow
// each other are one.

const kLeastBlock = 1_500;

const kFence = /^ {0,3}(`{3,}|~{3,})/, kItem = /^ {0,3}([-*+]|\d{1,9}[.)])(\s|$)/;

export function blocks(text: string): string[] {
  const all: string[] = [];
  let lines: string[] = [], fence = '', math = '', blank = false;
  const end = () => {
    const block = lines.join('\n'), last = all.at(-1);
    lines = [];
    if (last !== undefined && last.length + block.length < kLeastBlock) all[all.length - 1] = last + '\n\n' + block;
    else if (block) all.push(block);
  };
  for (const line of text.split('\n')) {
    const opens = line.match(kFence)?.[1];
    if (fence) {
      lines.push(line);
      if (opens && opens[0] === fence[0] && opens.length >= fence.length && line.trim() === opens) fence = '';
      continue;
    }
    if (math) {
      lines.push(line);
      if (line.trimEnd().endsWith(math)) math = '';
      continue;
    }
    if (line.trim() === '') { blank = true; if (lines.length) lines.push(line); continue; }
    const inList = lines.length > 0 && kItem.test(lines[0]);
    if (blank && !(/^\s{2,}/.test(line) || (inList && kItem.test(line)))) end();
    blank = false;
    lines.push(line);
    if (opens) fence = opens;
    const formula = line.trim();
    for (const [open, close] of [['$$', '$$'], ['\\[', '\\]']])
      if (formula.startsWith(open) && !formula.slice(2).includes(close)) math = close;
  }
  end();
  return all;
}

// Formatting takes time that grows faster than the text in some of them.
const tooMuch = (block: string) =>
  block.length > kMostBlock ||
  block.split('\n').some((line) => line.length > kMostLine || (line.match(/^[\s>*+-]*/)![0].match(/[>*+-]/g)?.length ?? 0) > kMostDepth || /^\s{60,}/.test(line)) ||
  /[[\]()*_~<&`!]{40,}/.test(block) || (block.match(/[[*_]/g)?.length ?? 0) > 2_000;

// ---- Markdown to HTML

const escaped = (text: string) => text.replace(/[&<>"']/g, (c) => `&#${c.charCodeAt(0)};`);
const formula = (tex: string, display: boolean) => `<span class="${display ? 'math display' : 'math'}">${escaped(tex)}</span>`;

const mathSpan = {
  name: 'math', level: 'inline' as const,
  start: (text: string) => text.match(/\$|\\\(|\\\[/)?.index,
  tokenizer(text: string) {
    const found = /^\$\$([^$]{1,2000})\$\$/.exec(text) ?? /^\\\[([\s\S]{1,2000}?)\\\]/.exec(text) ?? /^\\\(([^\n]{1,500}?)\\\)/.exec(text)
      ?? /^\$(?![\s\d]*\$)([^\s$](?:[^$\n]{0,300}[^\s$\\])?)\$(?!\d)/.exec(text);
    return found ? { type: 'math', raw: found[0], text: found[1], display: /^(\$\$|\\\[)/.test(found[0]) } : undefined;
  },
  renderer: (t: Tokens.Generic) => formula(t.text, t.display),
};

const marked = new Marked({
  gfm: true,
  extensions: [mathSpan],
  renderer: {
    html: (t: Tokens.HTML | Tokens.Tag) => escaped(t.raw),
    image: (t: Tokens.Image) => `<a href="${escaped(t.href)}">image: ${escaped(t.text || t.href)}</a>`,
    checkbox: (t: Tokens.Checkbox) => (t.checked ? '☑ ' : '☐ '),
    code: (t: Tokens.Code) => `<pre><code class="code language-${escaped((t.lang ?? '').trim().split(/[\s,{]/)[0])}">${highlighted(t.text, t.lang ?? '')}</code></pre>`,
  },
});

const kTags = ['p', 'br', 'hr', 'em', 'strong', 'del', 'code', 'pre', 'blockquote', 'a', 'span', 'ul', 'ol', 'li', 'table', 'thead', 'tbody', 'tr', 'th', 'td',
  'h1', 'h2', 'h3', 'h4', 'h5', 'h6'];
DOMPurify.addHook('afterSanitizeAttributes', (node) => {
  if (node.nodeName === 'A') {
    node.setAttribute('target', '_blank');
    node.setAttribute('rel', 'noopener noreferrer nofollow');
  }
});

function sanitized(html: string): DocumentFragment {
  return DOMPurify.sanitize(html, {
    ALLOWED_TAGS: kTags, ALLOWED_ATTR: ['href', 'class', 'start', 'align'], ALLOW_DATA_ATTR: false, ALLOW_ARIA_ATTR: false,
    ALLOWED_URI_REGEXP: /^(?:https?:\/\/|mailto:)/i, RETURN_DOM_FRAGMENT: true,
  });
}

// Headings of an answer stand below those of the page.
const lowered = (tokens: Token[]) => { for (const t of tokens) if (t.type === 'heading') t.depth = Math.min(6, t.depth + 2); return tokens; };

export function plain(text: string): HTMLElement {
  const pre = document.createElement('pre');
  pre.className = 'as-it-is';
  pre.textContent = text;
  nameTurning(pre);
  return pre;
}

// A block as elements; `copy` makes the button of a piece of code.
export function formatted(block: string, copy: (code: string) => HTMLElement): Node {
  if (tooMuch(block)) return plain(block);
  let all: DocumentFragment;
  try {
    all = sanitized(marked.parser(lowered(marked.lexer(block))));
  } catch {
    return plain(block);
  }
  for (const span of all.querySelectorAll<HTMLElement>('span.math')) {
    const tex = span.textContent ?? '';
    if (tex.length > kMostFormula) continue;
    const display = span.classList.contains('display');
    try { temml.render(tex, span, { displayMode: display, throwOnError: true, trust: false, maxExpand: 100, maxSize: [20, 200] }); }
    catch { span.textContent = tex; } // a formula that is none, or not yet whole
  }
  for (const pre of all.querySelectorAll('pre')) {
    pre.tabIndex = 0; // what scrolls can be reached
    const frame = document.createElement('div');
    frame.className = 'code-frame';
    const head = document.createElement('div');
    head.className = 'code-head';
    const language = document.createElement('span');
    language.textContent = /\blanguage-([\w+#.-]{1,24})(?=\s|$)/.exec(pre.firstElementChild?.className ?? '')?.[1] ?? '';
    head.append(language, copy(pre.textContent ?? ''));
    pre.replaceWith(frame);
    frame.append(head, pre);
  }
  for (const table of all.querySelectorAll('table')) {
    const frame = document.createElement('div');
    frame.className = 'table-frame';
    frame.tabIndex = 0;
    frame.setAttribute('role', 'region');
    frame.setAttribute('aria-label', 'Table');
    table.replaceWith(frame);
    frame.append(table);
  }
  nameTurning(all); // last: copied text stays as it was written
  return all;
}
