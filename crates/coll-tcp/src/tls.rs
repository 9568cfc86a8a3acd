//! TLS without certificates: both sides of a connection hold one Ed25519 key, made from the job's token, and prove it.
//!
//! The key is a raw public key (RFC 7250) that each side compares byte for byte with its own; signatures are checked by
//! rustls. Both sides sign in TLS 1.3 (RFC 8446), each under a label of its own, so that neither's can be sent back. The
//! keys of a connection are drawn for it alone: who learns the token later cannot read what went before.
//!
//! Only version 1.3 is spoken, and nothing is resumed. Claims are made within ([`crate::handshake`]), so that a
//! connection that is proved to be a rank's stays that rank's.

use std::fmt;
use std::io;
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{AlwaysResolvesClientRawPublicKeys, Resumption};
use rustls::crypto::{CryptoProvider, ring, verify_tls13_signature_with_raw_key};
use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer, ServerName, SubjectPublicKeyInfoDer, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::server::{AlwaysResolvesServerRawPublicKeys, NoServerSessionStorage};
use rustls::sign::CertifiedKey;
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, DistinguishedName, Error, ServerConfig,
    SignatureScheme,
};
use tokio::net::TcpStream;
use tokio_rustls::{TlsAcceptor, TlsConnector, TlsStream};

use crate::error::StartError;
use crate::token::Token;

/// What the key is made with, so that nothing else that is made from the token tells of it.
const LABEL: &[u8] = b"collc TLS 1.3 Ed25519 key";

/// What comes before the 32 bytes of an Ed25519 key in PKCS #8 (RFC 8410, section 7).
const PKCS8_HEAD: [u8; 16] = [0x30, 0x2e, 2, 1, 0, 0x30, 5, 6, 3, 0x2b, 0x65, 0x70, 4, 0x22, 4, 0x20];

/// Both sides' part of TLS for one job.
#[derive(Clone)]
pub(crate) struct Tls {
    client: Arc<ClientConfig>,
    server: Arc<ServerConfig>,
}

impl Tls {
    /// Makes the job's key. A token that is empty makes none.
    pub(crate) fn new(token: &Token) -> Result<Tls, StartError> {
        if token.reveal().is_empty() {
            return Err(StartError::TlsWithoutToken);
        }
        Tls::of_key(token).map_err(|error| StartError::System { what: "use TLS", detail: in_words(&error) })
    }

    fn of_key(token: &Token) -> Result<Tls, Error> {
        let provider = Arc::new(ring::default_provider());
        let pkcs8 = [&PKCS8_HEAD[..], &token.prove(&[LABEL])].concat();
        let key = ring::sign::any_eddsa_type(&PrivatePkcs8KeyDer::from(pkcs8))?;
        let public = key.public_key().ok_or_else(|| Error::General("a key without a public half".into()))?;
        let public = public.into_owned();
        let certified =
            Arc::new(CertifiedKey::new(vec![CertificateDer::from(public.as_ref().to_vec())], key));
        let pin = Arc::new(Pin { public, provider: Arc::clone(&provider) });
        let versions = [&rustls::version::TLS13];
        let mut client = ClientConfig::builder_with_provider(Arc::clone(&provider))
            .with_protocol_versions(&versions)?
            .dangerous()
            .with_custom_certificate_verifier(Arc::clone(&pin) as Arc<dyn ServerCertVerifier>)
            .with_client_cert_resolver(Arc::new(AlwaysResolvesClientRawPublicKeys::new(Arc::clone(
                &certified,
            ))));
        client.resumption = Resumption::disabled();
        client.enable_sni = false;
        let mut server = ServerConfig::builder_with_provider(provider)
            .with_protocol_versions(&versions)?
            .with_client_cert_verifier(pin)
            .with_cert_resolver(Arc::new(AlwaysResolvesServerRawPublicKeys::new(certified)));
        server.session_storage = Arc::new(NoServerSessionStorage {});
        server.send_tls13_tickets = 0;
        Ok(Tls { client: Arc::new(client), server: Arc::new(server) })
    }

    /// Speaks TLS to whoever accepted this connection.
    pub(crate) async fn connect(&self, stream: TcpStream) -> io::Result<TlsStream<TcpStream>> {
        // A name is asked for and not sent: keys are compared, names are not.
        let nobody = ServerName::try_from("collc.invalid").map_err(io::Error::other)?;
        Ok(TlsConnector::from(Arc::clone(&self.client)).connect(nobody, stream).await?.into())
    }

    /// Speaks TLS to whoever made this connection.
    pub(crate) async fn accept(&self, stream: TcpStream) -> io::Result<TlsStream<TcpStream>> {
        Ok(TlsAcceptor::from(Arc::clone(&self.server)).accept(stream).await?.into())
    }
}

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Tls(..)")
    }
}

/// Whether this is the error of a side that has another key, and so another token.
pub(crate) fn is_of_another_token(error: &io::Error) -> bool {
    let cause = error.get_ref().and_then(|cause| cause.downcast_ref::<Error>());
    matches!(cause, Some(Error::InvalidCertificate(_)))
}

/// What is wrong, without the reader having to know that it is TLS that says so.
pub(crate) fn in_words(error: &Error) -> String {
    match error {
        Error::DecryptError => "TLS: bytes on the way were altered, or are not this job's".to_owned(),
        Error::AlertReceived(alert) => format!("TLS: the other side gave up: {alert:?}"),
        other => format!("TLS: {other}"),
    }
}

/// Takes the job's own key, and no other.
#[derive(Debug)]
struct Pin {
    public: SubjectPublicKeyInfoDer<'static>,
    provider: Arc<CryptoProvider>,
}

impl Pin {
    fn compare(&self, theirs: &CertificateDer<'_>, more: &[CertificateDer<'_>]) -> Result<(), Error> {
        if theirs.as_ref() == self.public.as_ref() && more.is_empty() {
            return Ok(());
        }
        Err(CertificateError::ApplicationVerificationFailure.into())
    }

    /// By the job's key, which theirs has been found to be.
    fn verify(
        &self,
        message: &[u8],
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls13_signature_with_raw_key(message, &self.public, signed, algorithms)
    }
}

/// TLS 1.2 is not spoken: nothing is to be signed in its way.
fn not_spoken() -> Result<HandshakeSignatureValid, Error> {
    Err(Error::General("TLS 1.2 is not spoken here".into()))
}

impl ServerCertVerifier for Pin {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        self.compare(end_entity, intermediates).map(|()| ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _cert: &CertificateDer<'_>,
        _dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        not_spoken()
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        _cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.verify(message, dss)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        vec![SignatureScheme::ED25519]
    }

    fn requires_raw_public_keys(&self) -> bool {
        true
    }
}

impl ClientCertVerifier for Pin {
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn verify_client_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        _now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        self.compare(end_entity, intermediates).map(|()| ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _cert: &CertificateDer<'_>,
        _dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        not_spoken()
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        _cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.verify(message, dss)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        vec![SignatureScheme::ED25519]
    }

    fn requires_raw_public_keys(&self) -> bool {
        true
    }
}
