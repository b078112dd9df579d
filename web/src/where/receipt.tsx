// The receipt of one answer: what computed it, what was shared, what was guessed.
import { useEffect, useState } from 'preact/hooks';
import { getJson } from '../api';
import { withNames } from '../bidi';
import { chats } from '../chat/chats';
import type { Turn } from '../conversation';

interface Receipt {
  id: string; model: string; prompt_tokens: number; shared_tokens: number; completion_tokens: number;
  prefix_store?: { tokens: number; page?: string }[];
  speculation: { drafted: number; accepted: number };
  ops: { op: string; format: string; device: string; kernel: string; reason: string; ops: number }[];
}

const answered = (): Turn[] => chats.all.flatMap((c) => Object.values(c.turns)).filter((t) => t.role === 'assistant' && t.answer && t.state === 'done').sort((a, b) => b.at - a.at).slice(0, 50);

const stored = (r: Receipt) => Math.max(0, ...(r.prefix_store ?? []).map((one) => one.tokens));

export function ReceiptView({ id }: { id: string }) {
  const [receipt, setReceipt] = useState<Receipt>(), [problem, setProblem] = useState('');
  useEffect(() => {
    setReceipt(undefined);
    setProblem('');
    if (id) getJson(`/v1/receipts/${encodeURIComponent(id)}`).then(setReceipt, (e: Error) => setProblem(e.message));
  }, [id]);
  const all = answered();
  return (
    <section class="card wide" aria-label="Receipt of an answer" id="receipt">
      <h3>Receipt of an answer</h3>
      {all.length > 0 ? (
        <label>Answer <select value={id} onChange={(e) => { location.hash = `#/where/${encodeURIComponent(e.currentTarget.value)}`; }}>
          <option value="">choose one</option>
          {!all.some((t) => t.answer === id) && id && <option value={id}>{id}</option>}
          {all.map((t) => <option key={t.id} value={t.answer} selected={t.answer === id}>{withNames(t.text.trim().slice(0, 50)) || t.answer}</option>)}
        </select></label>
      ) : <p class="quiet">Every answer has one, for as long as it is among the last 1000 of the server. Ask something in the chat first.</p>}
      {problem && <p class="wrong" role="alert">{problem}</p>}
      {receipt && (
        <>
          <p>{receipt.prompt_tokens} prompt tokens, {receipt.shared_tokens} of them computed before for another request{stored(receipt) > 0 && ` (${stored(receipt)} read from the prefix store)`}; {receipt.completion_tokens} tokens of answer by {receipt.model}
            {receipt.speculation.drafted > 0 ? `; ${receipt.speculation.accepted} of ${receipt.speculation.drafted} guessed tokens were right` : '; none of them guessed ahead'}.</p>
          <div class="table-frame" tabIndex={0} role="region" aria-label="Kernels of this answer"><table class="plain lined">
            <thead><tr><th scope="col">op</th><th scope="col">format</th><th scope="col">ops in all programs</th><th scope="col">device</th><th scope="col">kernel</th><th scope="col">reason</th></tr></thead>
            <tbody>{receipt.ops.map((o, i) => <tr key={i}><th scope="row">{o.op}</th><td>{o.format}</td><td class="number">{o.ops}</td><td>{o.device}</td><td><code>{o.kernel}</code></td><td>{o.reason}</td></tr>)}</tbody>
          </table></div>
        </>
      )}
    </section>
  );
}
