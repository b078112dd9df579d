// One card on top of the view: device, speed, and what would make it faster.
import type { Found } from './backends';
import type { Speed } from './numbers';
import type { Explained } from './plan';
import { faster, place, speedOf, usesGpu } from './verdict';

export function Front({ model, workers, found, speed }: { model: string; workers: Explained[]; found: Found | undefined; speed: Speed }) {
  const { said, more } = speedOf(workers, speed), hints = faster(workers, found, speed);
  return (
    <section class={usesGpu(workers) ? 'card verdict' : 'card verdict slower'} aria-label="In short">
      <p class="answer">{model} runs on <b>{place(workers)}</b>. {said}</p>
      {more && <p class="quiet">{more}</p>}
      {hints.map((how, i) => <p key={i}><b>{i ? 'Also:' : 'To make it faster:'}</b> {how}</p>)}
      {found && !hints.length && <p class="quiet">This is the fastest device that gimbal found here.</p>}
    </section>
  );
}
