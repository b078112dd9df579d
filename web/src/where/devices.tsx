// All devices that gimbal looked for on the server's machine, and why some are not used.
import type { useBackends } from './backends';
import { bytes } from './numbers';

export function Devices({ found, problem, busy, look }: ReturnType<typeof useBackends>) {
  const there = found?.backends.filter((b) => b.devices.length) ?? [], absent = found?.backends.filter((b) => !b.devices.length) ?? [];
  return (
    <section class="card wide" aria-label="Devices of the machine">
      <h3>Devices of this machine <button type="button" class="small" disabled={busy} onClick={() => void look()}>{busy ? 'Looking …' : 'Look again'}</button></h3>
      {problem && <p class="wrong" role="alert">{problem}</p>}
      {found?.automatic && <p>The automatic choice is <b>{found.automatic.device}</b>: {found.automatic.reason}.</p>}
      {there.map((b) => b.devices.map((d) => (
        <div key={d.id}>
          <h4>{d.id} <small>{d.name}{d.software && ', a software device'}</small></h4>
          <p class="quiet">{d.memory_total !== null && `${bytes(d.memory_total)} of memory${d.memory_free !== null ? `, ${bytes(d.memory_free)} free now` : ''}; `}{d.threads > 0 && `${d.threads} threads; `}{d.kernels} kernels{d.features && `; features: ${d.features}`}.</p>
          {d.memory_total && d.memory_free !== null ? <div class="gauge" role="img" aria-label={`${bytes(d.memory_free)} free`}><span style={{ width: `${100 - (100 * d.memory_free) / d.memory_total}%`, background: 'var(--w6)' }} /></div> : null}
        </div>
      )))}
      {absent.length > 0 && (
        <details class="fold"><summary>{absent.length} backends without a device, and why</summary>
          <ul>{absent.map((b) => <li key={b.backend}><b>{b.name}</b>: {b.reason}{b.remedy && `; ${b.remedy}`}</li>)}</ul>
        </details>
      )}
    </section>
  );
}
