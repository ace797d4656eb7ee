package members;

import java.io.ByteArrayInputStream;
import java.io.StringReader;
import java.io.StringWriter;
import java.nio.charset.StandardCharsets;
import java.util.zip.CRC32;
import javax.xml.XMLConstants;
import javax.xml.parsers.DocumentBuilder;
import javax.xml.parsers.DocumentBuilderFactory;
import javax.xml.transform.OutputKeys;
import javax.xml.transform.Templates;
import javax.xml.transform.Transformer;
import javax.xml.transform.TransformerFactory;
import javax.xml.transform.dom.DOMSource;
import javax.xml.transform.stream.StreamResult;
import javax.xml.transform.stream.StreamSource;
import javax.xml.validation.Schema;
import javax.xml.validation.SchemaFactory;
import org.w3c.dom.Document;

/** Parses a document, validates it by a schema, and makes another one of it by a style sheet. */
final class Xml implements Member {
    private static final String SCHEMA = """
        <xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema">
          <xs:element name="orders"><xs:complexType><xs:sequence>
            <xs:element name="order" maxOccurs="unbounded"><xs:complexType><xs:sequence>
              <xs:element name="item" maxOccurs="unbounded"><xs:complexType>
                <xs:attribute name="name" use="required">
                  <xs:simpleType><xs:restriction base="xs:string"><xs:pattern value="[a-z]{2,9}"/></xs:restriction></xs:simpleType>
                </xs:attribute>
                <xs:attribute name="count" type="xs:positiveInteger" use="required"/>
                <xs:attribute name="price" type="xs:decimal" use="required"/>
              </xs:complexType></xs:element>
            </xs:sequence>
            <xs:attribute name="number" type="xs:nonNegativeInteger" use="required"/>
            <xs:attribute name="customer" type="xs:NCName" use="required"/>
            </xs:complexType></xs:element>
          </xs:sequence></xs:complexType></xs:element>
        </xs:schema>
        """;
    private static final String SHEET = """
        <xsl:stylesheet version="1.0" xmlns:xsl="http://www.w3.org/1999/XSL/Transform">
          <xsl:template match="/orders">
            <bills count="{count(order)}" items="{count(order/item)}">
              <xsl:for-each select="order[count(item) &gt; 2]">
                <xsl:sort select="@customer"/><xsl:sort select="@number" data-type="number"/>
                <bill to="{@customer}" of="{@number}" pieces="{sum(item/@count)}"><xsl:apply-templates select="item"/></bill>
              </xsl:for-each>
            </bills>
          </xsl:template>
          <xsl:template match="item">
            <xsl:choose>
              <xsl:when test="@count &gt; 10"><many><xsl:value-of select="translate(@name, 'aeiou', 'AEIOU')"/></many></xsl:when>
              <xsl:otherwise><few cents="{@price * 100 - (@price * 100) mod 1}"/></xsl:otherwise>
            </xsl:choose>
          </xsl:template>
        </xsl:stylesheet>
        """;

    private final byte[] document;
    private final DocumentBuilder builder;
    private final Schema schema;
    private final Templates sheet;

    Xml() throws Exception {
        StringBuilder text = new StringBuilder("<orders>\n");
        for (Order order : Order.some(1000, 4)) {
            text.append("<order number=\"").append(order.number).append("\" customer=\"").append(order.customer).append("\">");
            for (Order.Item item : order.items)
                text.append("<item name=\"").append(item.name()).append("\" count=\"").append(item.count())
                    .append("\" price=\"").append(item.price()).append("\"/>");
            text.append("</order>\n");
        }
        document = text.append("</orders>\n").toString().getBytes(StandardCharsets.US_ASCII);
        DocumentBuilderFactory builders = DocumentBuilderFactory.newInstance();
        builders.setNamespaceAware(true);
        builder = builders.newDocumentBuilder();
        schema = SchemaFactory.newInstance(XMLConstants.W3C_XML_SCHEMA_NS_URI)
            .newSchema(new StreamSource(new StringReader(SCHEMA)));
        sheet = TransformerFactory.newInstance().newTemplates(new StreamSource(new StringReader(SHEET)));
    }

    @Override
    public long operation() throws Exception {
        Document parsed = builder.parse(new ByteArrayInputStream(document));
        schema.newValidator().validate(new DOMSource(parsed));
        Transformer transformer = sheet.newTransformer();
        transformer.setOutputProperty(OutputKeys.OMIT_XML_DECLARATION, "yes");
        StringWriter made = new StringWriter();
        transformer.transform(new DOMSource(parsed), new StreamResult(made));
        CRC32 sum = new CRC32();
        sum.update(made.toString().getBytes(StandardCharsets.US_ASCII));
        return sum.getValue();
    }
}
