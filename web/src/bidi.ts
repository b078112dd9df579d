// Characters that change the direction of the text around them (U+202A to U+202E, U+2066 to U+2069) can make a text look like
// another one. Wherever the page shows a text that others wrote, it shows their names in their place.

const kTurning = /[\u202A-\u202E\u2066-\u2069]/, kEach = /[\u202A-\u202E\u2066-\u2069]/g;
const nameOf = (c: string) => `U+${c.charCodeAt(0).toString(16).toUpperCase()}`;

export const withNames = (text: string) => (kTurning.test(text) ? text.replace(kEach, (c) => `⟨${nameOf(c)}⟩`) : text);

// Changes the texts below `root`.
export function nameTurning(root: Node) {
  if (!kTurning.test(root.textContent ?? '')) return;
  const walk = document.createTreeWalker(root, NodeFilter.SHOW_TEXT), found: Text[] = [];
  for (let node = walk.nextNode(); node; node = walk.nextNode()) if (kTurning.test((node as Text).data)) found.push(node as Text);
  for (const node of found) {
    const parts = node.data.split(/([\u202A-\u202E\u2066-\u2069])/).filter((part) => part);
    node.replaceWith(...parts.map((part) => {
      if (!kTurning.test(part)) return part;
      const mark = document.createElement('span');
      mark.className = 'turning';
      mark.title = 'a character that changes the direction of the text';
      mark.textContent = nameOf(part);
      return mark;
    }));
  }
}
