// The page's icon shows the number of waiting cards.
const link = document.querySelector('link[rel="icon"]');
const defaultHref = link?.href;

function drawIcon(count) {
  const text = count > 99 ? "99+" : String(count);
  const size = [22, 19, 14][text.length - 1];
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32"><rect width="32" height="32" rx="7" fill="#8f4d00"/><text x="16" y="17" fill="#fff" font-family="sans-serif" font-weight="700" font-size="${size}" text-anchor="middle" dominant-baseline="central">${text}</text></svg>`;
}

export function showCountInIcon(count) {
  const href = count > 0 ? `data:image/svg+xml,${encodeURIComponent(drawIcon(count))}` : defaultHref;
  if (link && link.href !== href) {
    link.href = href;
  }
}
