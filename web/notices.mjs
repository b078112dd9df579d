// Writes the table of the page's libraries into THIRD_PARTY_NOTICES.md, between two marks: all that the lockfile has for the
// page itself, with the licence of each and its copyright lines. Usage: notices.mjs FILE
import { existsSync, readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const here = dirname(fileURLToPath(import.meta.url));
const lock = JSON.parse(readFileSync(join(here, 'package-lock.json'), 'utf8'));
const [begin, end] = ['<!-- page: scripts/build/page.sh -->', '<!-- end of page -->'];

function copyright(folder) {
  const file = readdirSync(folder).find((name) => /^licen[cs]e/i.test(name));
  const lines = file ? readFileSync(join(folder, file), 'utf8').split('\n') : [];
  const found = lines.filter((line) => /^\W*copyright (\(c\)|©|\d{4})/i.test(line)).map((line) => line.replace(/^\W*copyright\s*(\(c\)|©)?\s*/i, '').replace(/\. All rights reserved\.?|\[|\]/gi, '').trim());
  const author = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')).author;
  return [...new Set(found)].join('; ') || (typeof author === 'object' ? author.name : author) || 'its authors';
}

const rows = [];
for (const [path, facts] of Object.entries(lock.packages)) {
  const folder = join(here, path);
  if (!path || facts.dev || facts.optional || !existsSync(folder)) continue;
  rows.push(`| ${path.replace('node_modules/', '')} ${facts.version} | ${facts.license} | ${copyright(folder).replaceAll('|', '/')} |`);
}
const text = readFileSync(process.argv[2], 'utf8');
const [from, to] = [text.indexOf(begin), text.indexOf(end)];
if (from < 0 || to < from) throw new Error(`${process.argv[2]} lacks the marks ${begin} and ${end}`);
writeFileSync(process.argv[2], text.slice(0, from) + [begin, '| what | licence | copyright |', '|---|---|---|', ...rows, ''].join('\n') + text.slice(to));
