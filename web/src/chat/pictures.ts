// A picture of a message is a data: URL. One with long sides becomes smaller here: no encoder keeps more pixels.
import type { Attachment } from '../conversation';

const kMostSide = 2048, kMostFile = 32_000_000, kMostSent = 4_000_000; // pixels, bytes
const kSent = ['image/png', 'image/jpeg', 'image/webp', 'image/gif']; // kinds that the server reads

export const isPicture = (file: File) => file.type.startsWith('image/');

const asUrl = (file: Blob) => new Promise<string>((resolve, reject) => {
  const reader = new FileReader();
  reader.onload = () => resolve(reader.result as string);
  reader.onerror = () => reject(reader.error);
  reader.readAsDataURL(file);
});

// Throws an Error with a sentence for people.
export async function asPicture(file: File): Promise<Attachment> {
  if (file.size > kMostFile) throw new Error(`${file.name} is larger than 32 MB.`);
  let bitmap: ImageBitmap;
  try { bitmap = await createImageBitmap(file); } catch { throw new Error(`${file.name} is no picture that this browser can read.`); }
  try {
    const scale = Math.min(1, kMostSide / Math.max(bitmap.width, bitmap.height));
    if (scale === 1 && file.size <= kMostSent && kSent.includes(file.type)) return { name: file.name, text: '', image: await asUrl(file) };
    const canvas = document.createElement('canvas');
    canvas.width = Math.max(1, Math.round(bitmap.width * scale)), canvas.height = Math.max(1, Math.round(bitmap.height * scale));
    const context = canvas.getContext('2d')!;
    context.fillStyle = 'white'; // below transparent parts
    context.fillRect(0, 0, canvas.width, canvas.height);
    context.drawImage(bitmap, 0, 0, canvas.width, canvas.height);
    return { name: file.name, text: '', image: canvas.toDataURL('image/jpeg', 0.92) };
  } finally { bitmap.close(); }
}
